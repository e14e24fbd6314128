"""The test's side of it: starts the process, holds it, and tells it what to do."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Final, Self

import boto3
import msgspec

from tests.aws_calls.ledger import LEDGER, Account
from tests.sources import ROOT

from .settings import CONTROL, DISCOVERY_TAG, ROLE, MotoSettings

KEYS: Final = {"AWS_ACCESS_KEY_ID": "kerf", "AWS_SECRET_ACCESS_KEY": "kerf"}
CONTROL_SECONDS: Final = 30.0


class Call(msgspec.Struct, frozen=True):
    """One API call: when it came (seconds since the epoch), a digest of its parameters, and the caller's access key."""

    service: str
    action: str
    region: str
    time: float
    digest: str
    caller: str


class Fleet(msgspec.Struct, frozen=True):
    """One CreateFleet that was no dry run: when it came and was answered (seconds since the epoch), the IDs of its
    instances and the codes of its errors."""

    asked: float
    answered: float
    instances: tuple[str, ...]
    errors: tuple[str, ...]


class MotoAws:
    """AWS in a process of its own. Keyword arguments are those of MotoSettings; `port` 0 takes a free one."""

    _running: ClassVar[list[MotoAws]] = []

    def __init__(self, *, port: int = 0, **settings: Any) -> None:
        self.settings: Final = MotoSettings(**settings)
        self.endpoint_url = ""
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process; return when AWS answers and everything is in place (about three seconds)."""
        given = msgspec.json.encode(self.settings).decode()
        command = [sys.executable, "-m", "tests.cluster.moto_aws", "--port", str(self._port), "--settings", given]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.endpoint_url = self._process.stdout.readline().decode().strip()
        if not self.endpoint_url:
            raise RuntimeError(f"moto ended with exit code {self._process.wait()}")
        self._running.append(self)

    @classmethod
    def running(cls) -> Sequence[MotoAws]:
        """Those that this process has started and not stopped."""
        return tuple(cls._running)

    def judged(self) -> None:
        """Enter the calls that were judged since the last time in the ledger of this process."""
        LEDGER.add(msgspec.convert(self.command("judged"), Account))

    def stop(self) -> None:
        """End it. Does nothing when it is not running."""
        if self._process is not None:
            if self in self._running:
                self._running.remove(self)
                with suppress(OSError):
                    self.judged()
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def cluster_name(self) -> str:
        """Also the name of the interruption queue, and the value of the discovery tag."""
        return self.settings.cluster_name

    @property
    def region(self) -> str:
        return self.settings.region

    @property
    def role(self) -> str:
        """An IAM role that node classes may name."""
        return ROLE

    @property
    def discovery(self) -> dict[str, str]:
        """The tag by which the subnets and the security group are selected."""
        return {DISCOVERY_TAG: self.cluster_name}

    def environment(self) -> dict[str, str]:
        """Environment variables with which any AWS SDK comes here."""
        own = {"AWS_ENDPOINT_URL": self.endpoint_url, "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        return {**KEYS, **own, "AWS_EC2_METADATA_DISABLED": "true"}

    def session(self) -> Any:
        """A boto3 Session with this AWS's keys (clients still need `endpoint_url`)."""
        return boto3.session.Session(aws_access_key_id="kerf", aws_secret_access_key="kerf", region_name=self.region)

    def client(self, service: str) -> Any:
        """A boto3 client that comes here."""
        return self.session().client(service, endpoint_url=self.endpoint_url)

    def instances(self, *states: str) -> list[dict[str, Any]]:
        """Every instance of every region as EC2 has it, late or not; with `states` only those in one of them."""
        found: list[dict[str, Any]] = self.command("instances")
        return [one for one in found if not states or one["state"] in states]

    def calls(self, action: str = "") -> list[Call]:
        """The call log, oldest first; of one action if named."""
        found = msgspec.convert(self.command("calls"), list[Call])
        return [one for one in found if not action or one.action == action]

    def fleets(self) -> list[Fleet]:
        """All calls of CreateFleet that were answered, oldest first."""
        return msgspec.convert(self.command("fleets"), list[Fleet])

    def clear_calls(self) -> None:
        self.command("clear_calls")

    def stock_out(
        self,
        instance_type: str = "*",
        zone: str = "*",
        capacity_type: str = "*",
        *,
        left: int = 0,
        code: str = "InsufficientInstanceCapacity",
    ) -> None:
        """Of what matches, only `left` more instances can be had. The latest stock-out that matches counts."""
        given = {"instance_type": instance_type, "zone": zone, "capacity_type": capacity_type}
        self.command("stock_out", {**given, "left": left, "code": code})

    def reserve(self, id_: str, instance_type: str, zone: str, total: int, tags: Mapping[str, str]) -> None:
        """The account has this capacity reservation, of so many machines in all."""
        given = {"id": id_, "instance_type": instance_type, "zone": zone, "total": total, "tags": dict(tags)}
        self.command("reserve", given)

    def group(self, id_: str, name: str, strategy: str, partitions: int = 0, *, state: str = "available") -> None:
        """The account has this placement group."""
        given = {"id": id_, "name": name, "strategy": strategy, "partitions": partitions, "state": state}
        self.command("group", given)

    def shift(self, zone_id: str, seconds: float, *, status: str = "APPLIED", auto: bool = False) -> None:
        """Traffic is shifted away from a zone for so long; `auto`: by AWS itself."""
        self.command("shift", {"zone_id": zone_id, "seconds": seconds, "status": status, "auto": auto})

    def clear_shifts(self) -> None:
        """All zones are as they were."""
        self.command("clear_shifts")

    def associate(self, *roles: tuple[str, str, str]) -> None:
        """From now on EKS Pod Identity gives these ServiceAccounts (namespace, name) a role (ARN), and no others."""
        given = [{"namespace": space, "account": name, "role_arn": arn} for space, name, arn in roles]
        self.command("associate", given)

    def quota(self, code: str, vcpus: float) -> None:
        """The quota of this code is so many vCPUs from now on."""
        self.command("quota", {code: vcpus})

    def restock(self) -> None:
        """Everything is to be had again."""
        self.command("restock")

    def fail(
        self,
        action: str,
        code: str,
        message: str = "injected",
        *,
        status: int = 400,
        times: int = 1,
        delay: float = 0.0,
        after: bool = False,
    ) -> None:
        """The next `times` calls of an action fail; with `after` they took effect all the same.

        The SDK repeats a call once by itself on throttling and status 5xx: `times=2` makes such a call fail.
        """
        given = {"action": action, "code": code, "message": message, "status": status, "times": times}
        self.command("fault", {**given, "delay": delay, "after": after})

    def clear_faults(self) -> None:
        """No call fails any more."""
        self.command("clear_faults")

    def set_describe_delay(self, seconds: float) -> None:
        """From now on DescribeInstances shows a new instance only after this long."""
        self.command("describe_delay", seconds)

    def set_describe_page(self, most: int) -> None:
        """From now on a page of DescribeInstances has so many instances at most."""
        self.command("describe_page", most)

    def interrupt(self, instance_id: str, kind: str = "spot", *, terminate_after: float | None = None) -> None:
        """Put an event about an instance into the queue; kinds are in events.py."""
        self.command("interrupt", {"instance_id": instance_id, "kind": kind, "terminate_after": terminate_after})

    def ail(self, instance_id: str, what: str, *, seconds: float = 0.0, description: str = "") -> None:
        """From now on a status check of an instance fails, or an event is scheduled; `what` as in ailments.py."""
        given = {"instance_id": instance_id, "what": what, "seconds": seconds, "description": description}
        self.command("ail", given)

    def recover(self, instance_id: str) -> None:
        """Nothing ails the instance any more."""
        self.command("recover", instance_id)

    def terminate(self, instance_id: str) -> None:
        """EC2 ends an instance by itself, at once."""
        self.command("terminate", instance_id)

    def release_images(self, kubernetes_version: str = "") -> list[str]:
        """Publish newer images behind every `latest` alias, as AWS does, for the cluster's version or another one;
        returns their IDs."""
        found: list[str] = self.command("release_images", kubernetes_version)
        return found

    def command(self, name: str, given: Any = None) -> Any:
        """Send one control command."""
        request = urllib.request.Request(f"{self.endpoint_url}{CONTROL}{name}", data=msgspec.json.encode(given))
        with urllib.request.urlopen(request, timeout=CONTROL_SECONDS) as answer:
            return msgspec.json.decode(answer.read())
