"""What a replica keeps in Secrets: the webhook's certificate and the key for launch marks. One thread each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.model.instants import rfc3339
from kerf.ports import Clock
from kerf.runtime.inbox import Reported, outcome_of
from kerf.runtime.secrets.certificates import WebhookCertificate
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.secrets.launch_secret import LaunchSecret
from kerf.runtime.secrets.stored_secret import Requests
from kerf.runtime.settings.options import Options
from kerf.telemetry.log.logs import Logger
from kerf.telemetry.telemetry import Telemetry

#: A Secret that was deleted, or a configuration without its CA, stops the webhook until then.
CERTIFICATES_EVERY: Final = timedelta(minutes=1)
CERTIFICATES_AGAIN: Final = timedelta(seconds=10)
#: The verb of its failure, as `kerf status` names it.
KEEP_CERTIFICATE: Final = "KeepWebhookCertificate"
LAUNCH_KEY_EVERY, LAUNCH_KEY_AGAIN = timedelta(minutes=5), timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Keepers:
    """`namespace` is the controller's own, `leads` says whether this process may write, `report` takes what fails
    and what does not any more, `stop` ends both threads."""

    kube: Requests
    clock: Clock
    options: Options
    namespace: str
    log: Logger
    telemetry: Telemetry
    leads: Callable[[], bool]
    report: Callable[[Reported], None]
    stop: threading.Event

    # --- the webhook's certificate ------------------------------------------------------------------------------
    def certificates(self) -> None:
        """Keep the webhook's certificate until stopped, when this installation makes it."""
        options = self.options
        if not options.webhook_service:
            return
        keeper = WebhookCertificate(
            self.kube,
            namespace=self.namespace,
            service=options.webhook_service,
            secret=options.webhook_cert_secret,
            configuration=options.webhook_configuration,
        )
        due, led = self.clock.monotonic(), False
        while not self.stop.is_set():
            leads = self.leads()
            if self.clock.monotonic() >= due or (leads and not led):
                due = self.clock.monotonic() + self._certificate_once(keeper, leads).total_seconds()
            led = leads
            self.stop.wait(CERTIFICATES_AGAIN.total_seconds())

    def _certificate_once(self, keeper: WebhookCertificate, leads: bool) -> timedelta:
        """When to look again."""
        secret, now = f"secret/{self.namespace}/{self.options.webhook_cert_secret}", self.clock.now()
        try:
            if keeper.keep(now, leads=leads):
                self.log.info("wrote the webhook's certificate", Secret={"name": self.options.webhook_cert_secret})
        except Exception as error:  # the webhook's trouble must not become the controller's
            self.telemetry.trouble("renewing the webhook's certificate failed", "", error)
            words = f"{error}{_expiry(keeper.expires, now)}"
            self.report(Reported(KEEP_CERTIFICATE, secret, now, outcome_of(error), words))
            return CERTIFICATES_AGAIN
        self.report(Reported(KEEP_CERTIFICATE, secret, now))
        return CERTIFICATES_EVERY

    # --- the key for launch marks -------------------------------------------------------------------------------
    def launch_key(
        self,
        keys: LaunchKeys,
        earlier_key_in_use: Callable[[], bool],
        changed: Callable[[], None],
        at_once: threading.Event,
    ) -> None:
        """Keep the key until stopped. `changed` is called when the keys have changed; `at_once` asks for a look.

        Who stops this process sets `stop` first and then `at_once`.
        """
        name = self.options.launch_key_secret
        if not name or not self.namespace:
            keys.use_own()
            return
        secret = LaunchSecret(
            self.kube,
            keys,
            namespace=self.namespace,
            name=name,
            leads=self.leads,
            earlier_key_in_use=earlier_key_in_use,
            replaced=lambda: self.log.error("replaced a malformed key for launch marks", Secret={"name": name}),
        )
        while True:
            at_once.clear()
            if self.stop.is_set():
                return
            version, pause = keys.version, self._key_once(secret)
            if keys.version != version:
                changed()
            at_once.wait(pause.total_seconds())

    def _key_once(self, secret: LaunchSecret) -> timedelta:
        try:
            known = secret.keep()
        except Exception as error:
            self.telemetry.trouble("the key for launch marks cannot be saved", "", error)
            return LAUNCH_KEY_AGAIN
        return LAUNCH_KEY_EVERY if known else LAUNCH_KEY_AGAIN


def _expiry(expires: datetime | None, now: datetime) -> str:
    """The expiry of the webhook's certificate, to be put behind an error; empty when it is not known."""
    if expires is None:
        return ""
    return f"; the webhook's certificate {'has expired' if expires <= now else 'expires'} at {rfc3339(expires)}"
