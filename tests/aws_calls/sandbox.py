"""Judges the sandbox's calls: for each it has Kerf's own AWS layer make the calls of AWS that it would send.

The layer works on clients that send nothing: they judge the parameters, and answer with what is empty.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache, wraps
from typing import Any, Final

import botocore.session
import msgspec
from botocore import xform_name

from kerf.aws.cloud import AwsOptions
from kerf.ports import PortError
from kerf.sandbox.aws.cloud import SandboxCloud

from .clients import refused
from .ledger import LEDGER, SANDBOX

#: The calls of the Cloud port.
VERBS: Final = (
    *("region", "on_demand_prices", "spot_prices", "cluster", "resolve", "instances", "impairments", "zonal_shifts"),
    *("create_fleet", "ensure_template"),
    *("dry_run", "terminate", "tag", "ensure_instance_profile", "delete_class_resources", "launch_templates"),
    *("instance_profiles", "delete_resource", "receive", "delete_message"),
)
#: An answer is as empty as it may be down to so many levels.
_DEPTH: Final = 3
_SCALARS: Final = {"integer": 0, "long": 0, "boolean": False, "double": 0.0, "float": 0.0, "string": "x", "blob": b""}
#: By shape: a parameter of SSM names an image.
_VALUES: Final = {"PSParameterValue": "ami-0123456789abcdef0"}
_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)


def install() -> None:
    """From now on every call of the sandbox is judged before it takes effect. Repeating it changes nothing."""
    for verb in VERBS:
        original = getattr(SandboxCloud, verb)
        if not hasattr(original, "__wrapped__"):
            setattr(SandboxCloud, verb, _judged(verb, original))


def _judged(verb: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def call(cloud: SandboxCloud, *args: Any, **more: Any) -> Any:
        more_values = {name: value for name, value in more.items() if name != "may_act"}
        judge(cloud, verb, *(one for one in args if not callable(one)), **more_values)
        return original(cloud, *args, **more)

    return call


# --- the calls of AWS behind a call of the port --------------------------------------------------------------------
_LOCK: Final = threading.RLock()
_SHADOWS: Final[dict[tuple[str, str], _Shadow]] = {}


class _Shadow:
    """Kerf's AWS layer for one cluster, and what its clients were asked since `calls` was last cleared."""

    def __init__(self, cluster_name: str, region: str) -> None:
        from kerf.aws.cloud import AwsCloud  # half a second, for runs that use a sandbox

        self.calls = self.refusals = 0
        #: Digests of calls of the port that broke no rule, with their number of calls of AWS.
        self.known: dict[bytes, int] = {}
        self.cloud = AwsCloud(
            AwsOptions(
                cluster_name=cluster_name, region=region, interruption_queue=cluster_name, session=_Session(self)
            )
        )


def judge(cloud: SandboxCloud, verb: str, *args: Any, **more: Any) -> None:
    """Judge a call of the port. Raises the port's error when AWS would refuse."""
    name, region = cloud._name, cloud._ec2.region.name
    key = hashlib.blake2b(msgspec.msgpack.encode((verb, args, more), enc_hook=repr), digest_size=16).digest()
    with _LOCK:
        shadow = _SHADOWS.get((name, region))
        if shadow is None:
            shadow = _SHADOWS[(name, region)] = _Shadow(name, region)
        if key in shadow.known:
            LEDGER.repeat(SANDBOX, shadow.known[key])
            return
        shadow.calls = shadow.refusals = 0
        try:
            getattr(shadow.cloud, verb)(*args, **more)
        except PortError:
            if shadow.refusals:
                raise
        if not shadow.refusals:
            shadow.known[key] = shadow.calls


class _Session:
    """In place of a session of boto3."""

    def __init__(self, shadow: _Shadow) -> None:
        self._shadow = shadow

    def client(self, service: str, **_: Any) -> _Client:
        return _Client(service, self._shadow)


class _Nothing:
    """Takes every registration of a handler."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class _Meta:
    events = _Nothing()
    endpoint_url = "https://sandbox"


class _Client:
    """In place of a client of boto3: judges what it is asked, and answers with what is empty."""

    meta = _Meta()

    def __init__(self, service: str, shadow: _Shadow) -> None:
        self._service, self._shadow = service, shadow

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = _operations(self._service).get(method)
        if operation is None:
            raise AttributeError(method)
        return lambda **parameters: self._ask(operation, parameters)

    def get_paginator(self, method: str) -> _Paginator:
        return _Paginator(self, self._service, _operations(self._service)[method])

    def _ask(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._shadow.calls += 1
        refusal = LEDGER.judge(SANDBOX, self._service, operation, parameters)
        if refusal is not None:
            self._shadow.refusals += 1
            raise refused(refusal.code, refusal.text, operation)
        answer: dict[str, Any] = _empty(_model(self._service).operation_model(operation).output_shape)
        return answer


class _Paginator:
    """One page, asked for as botocore's paginators ask for a first one."""

    def __init__(self, client: _Client, service: str, operation: str) -> None:
        self._client, self._service, self._operation = client, service, operation

    def paginate(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        size = parameters.pop("PaginationConfig", {}).get("PageSize")
        limit = _paginators(self._service).get_paginator(self._operation).get("limit_key")
        yield self._client._ask(self._operation, {**parameters, **({limit: size} if size and limit else {})})


@cache
def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


@cache
def _paginators(service: str) -> Any:
    return botocore.session.get_session().get_paginator_model(service)


@cache
def _operations(service: str) -> dict[str, str]:
    """Operations by the name of the client's method."""
    return {xform_name(name): name for name in _model(service).operation_names}


def _empty(shape: Any, depth: int = _DEPTH) -> Any:
    """A value of a shape in which every list is empty."""
    if shape is None:
        return {}
    if shape.type_name == "structure":
        return {name: _empty(one, depth - 1) for name, one in shape.members.items()} if depth else {}
    if shape.type_name in ("list", "map"):
        return [] if shape.type_name == "list" else {}
    return _DAY if shape.type_name == "timestamp" else _VALUES.get(shape.name, _SCALARS[shape.type_name])
