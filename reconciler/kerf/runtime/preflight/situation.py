"""For which Kerf is checked: the one that is installed, with its settings, or one that is to come, as it is assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kerf.ports import PortError
from kerf.runtime.preflight import installed, values
from kerf.runtime.preflight.asking import Account, Asker
from kerf.runtime.preflight.findings import NotAllowed
from kerf.runtime.preflight.installed import Installed
from kerf.runtime.preflight.values import Expected
from kerf.runtime.settings import settings
from kerf.runtime.settings.options import Options

#: Where Kerf is installed if nothing else is named.
NAMESPACE: Final = "kerf"
_QUEUE: Final = "INTERRUPTION_QUEUE"
#: What the caller's own SDK reads, too.
_SDK: Final = ("AWS_REGION", "AWS_ENDPOINT_URL")


@dataclass(frozen=True, slots=True)
class Given:
    """What a command line says: flags of settings, the environment, values of the chart, and a namespace."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    values: Mapping[str, Any]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """`installed` and `expected` are None where `unknown` names why it is not known whether Kerf is installed.

    `account` is the controller's ServiceAccount, None where it is not known. `assumed` are values that neither flags
    nor files give.
    """

    options: Options
    installed: Installed | None = None
    expected: Expected | None = None
    account: Account | None = None
    unknown: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def of(self) -> str:
        """Where the settings come from."""
        if self.installed is not None:
            return f"of {self.installed}"
        if self.unknown:
            return "from flags and the environment"
        text = "Kerf is not installed: checked for a planned installation"
        return f"{text}, assuming {', '.join(self.assumed)}" if self.assumed else text


def find(asker: Asker | None, given: Given) -> Situation:
    """Without an API server the situation is unknown. Raises SettingsError."""
    if asker is None:
        return _unknown(given, "the API server does not answer", None)
    try:
        found = installed.find(asker, given.namespace)
    except NotAllowed as error:
        return _unknown(given, f"needs {error}", asker)
    except PortError as error:
        return _unknown(given, str(error), asker)
    return _to_come(given) if found is None else _as_installed(given, found)


def _as_installed(given: Given, found: Installed) -> Situation:
    """Flags that were given count first; of the environment only the SDK's own variables."""
    own = {name: given.environment[name] for name in _SDK if name in given.environment}
    arguments = [*found.arguments, *given.arguments]
    try:
        options = settings.parse(arguments, {**own, **found.environment})
    except settings.SettingsError as error:
        raise settings.SettingsError([f"{found}: {problem}" for problem in error.problems]) from error
    return Situation(options, installed=found, account=found.account)


def _to_come(given: Given) -> Situation:
    expected = values.expected(given.values, given.namespace or NAMESPACE)
    environment = {**given.environment, **expected.environment}
    try:
        options = settings.parse(given.arguments, environment)
    except settings.SettingsError as error:
        hint = "Kerf is not installed, so nothing in the cluster names the settings: use flags, or --values FILE"
        raise settings.SettingsError([*error.problems, hint]) from error
    assumed = []
    if not any(one.startswith("--interruption-queue") for one in given.arguments) and _QUEUE not in environment:
        options = replace(options, interruption_queue=options.cluster_name)
        assumed.append(f"INTERRUPTION_QUEUE={options.cluster_name}")
    if not given.namespace:
        assumed.append(f"namespace {NAMESPACE}")
    if not given.values:
        assumed.append("the default values of the chart")
    return Situation(options, expected=expected, account=expected.account, assumed=tuple(assumed))


def _unknown(given: Given, why: str, asker: Asker | None) -> Situation:
    """The caller's ServiceAccount is the controller's only in the container of the controller."""
    environment = {**given.environment, **values.expected(given.values, given.namespace or NAMESPACE).environment}
    try:
        options = settings.parse(given.arguments, environment)
    except settings.SettingsError as error:
        hint = f"the settings of an installed Kerf are not known ({why}): use flags, or --values FILE"
        raise settings.SettingsError([*error.problems, hint]) from error
    account = asker.own_account() if asker is not None and installed.runs_here(given.environment) else None
    return Situation(options, account=account, unknown=why)
