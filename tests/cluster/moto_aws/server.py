"""The process: moto's server behind a small gate that writes the call log, plays faults, and listens to the test.

The gate passes everything on to moto except the Price List service, ARC zonal shift, EKS Pod Identity and quotas of
EC2, which moto does not have, and paths under `/kerf/`, by which the test controls this AWS.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

# Before moto is imported: its own list of images is long, and none of them is a node's.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from tests.aws_calls.ledger import LEDGER, Account

from .ailments import Ailment
from .entitlements import Association, associations, is_association, quota
from .events import interruption_body
from .extension import extend
from .instance_rows import tags_of
from .market import Market
from .placement import Group
from .reservations import Reserved
from .rules import judge
from .seed import release_images, seed
from .settings import CONTROL, MotoSettings
from .shifts import Shift, managed_resource
from .world import Fault, StockOut, World, backend

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Answer = tuple[int, str, bytes]
_MANAGED = "/managedresources/"


class Handler(MotoRequestHandler):
    """Says nothing for every request."""

    def log_request(self, *args: Any) -> None:
        return


class Gate:
    """The WSGI application."""

    def __init__(self, settings: MotoSettings) -> None:
        self.settings = settings
        self.world = World(settings, describe_delay=settings.describe_delay)
        self.market = Market(settings)
        self._releases = 0
        self._moto = DomainDispatcherApplication(create_backend_app)
        extend(self.world, self.market)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        path = environ.get("PATH_INFO", "")
        if path.startswith(CONTROL):
            return _send(start_response, self._control(path.removeprefix(CONTROL), body))
        return self._aws(environ, start_response, body)

    def _aws(self, environ: Environ, start_response: StartResponse, body: bytes) -> Iterable[bytes]:
        service, region, action = _call(environ, body)
        self.world.record((service, region, action), body, _scope(environ)[0])
        refusal = judge(service, action, environ, body)
        if refusal is not None:
            return _send(start_response, _refusal(service, Fault(action, refusal.code, refusal.text)))
        fault = self.world.fault(action)
        if fault is not None:
            time.sleep(fault.delay)
            if fault.after:
                for _ in self._moto(environ, lambda *_: None):
                    pass
            return _send(start_response, _refusal(service, fault))
        if service == "pricing" and action == "GetProducts":
            answer = json.dumps(self.market.products(json.loads(body))).encode()
            return _send(start_response, (200, "application/x-amz-json-1.1", answer))
        if service == "arc-zonal-shift" and action == "GetManagedResource":
            arn = environ["PATH_INFO"].removeprefix(_MANAGED)
            answer = json.dumps(managed_resource(arn, self.world.shifts)).encode()
            return _send(start_response, (200, "application/json", answer))
        if service == "eks" and is_association(environ["PATH_INFO"]):
            given = associations(environ["PATH_INFO"], environ.get("QUERY_STRING", ""), self.world.associations)
            return _send(start_response, (200, "application/json", json.dumps(given).encode()))
        if service == "servicequotas" and action == "GetServiceQuota":
            answer = json.dumps(quota(body, self.world.quotas)).encode()
            return _send(start_response, (200, "application/x-amz-json-1.1", answer))
        result: Iterable[bytes] = self._moto(environ, start_response)
        return result

    def _control(self, command: str, body: bytes) -> Answer:
        handler = getattr(self, f"control_{command}", None)
        if handler is None:
            return 404, "text/plain", f"no such command: {command}".encode()
        return 200, "application/json", msgspec.json.encode(handler(body))

    # --- commands; each takes the request's body and returns what is sent back as JSON --------------------------------
    def control_instances(self, body: bytes) -> list[dict[str, Any]]:
        """All instances, or those with the IDs given."""
        wanted = msgspec.json.decode(body) if body else None
        with self.world.settled():
            return [_instance(region, one) for region, one in _everything() if wanted is None or one.id in wanted]

    def control_states(self, _: bytes) -> dict[str, str]:
        """The state of every instance by ID: little enough to be asked often."""
        with self.world.settled():
            return {one.id: one.state for _region, one in _everything()}

    def control_calls(self, _: bytes) -> list[Any]:
        return list(self.world.calls)

    def control_fleets(self, _: bytes) -> list[Any]:
        return list(self.world.fleets)

    def control_judged(self, _: bytes) -> Account:
        """The calls that were judged since the last time, and those that broke a rule."""
        return LEDGER.take()

    def control_clear_calls(self, _: bytes) -> None:
        self.world.calls.clear()

    def control_stock_out(self, body: bytes) -> None:
        with self.world.lock:
            self.world.stock_outs.insert(0, msgspec.json.decode(body, type=StockOut))

    def control_reserve(self, body: bytes) -> None:
        with self.world.lock:
            one = msgspec.json.decode(body, type=Reserved)
            self.world.reservations[one.id] = one

    def control_group(self, body: bytes) -> None:
        with self.world.lock:
            one = msgspec.json.decode(body, type=Group)
            self.world.placement_groups[one.id] = one

    def control_shift(self, body: bytes) -> None:
        with self.world.lock:
            self.world.shifts.append(msgspec.json.decode(body, type=Shift))

    def control_clear_shifts(self, _: bytes) -> None:
        with self.world.lock:
            self.world.shifts.clear()

    def control_associate(self, body: bytes) -> None:
        """Replace all associations."""
        with self.world.lock:
            found = msgspec.json.decode(body, type=list[Association])
            self.world.associations = {f"a-{number}": one for number, one in enumerate(found)}

    def control_quota(self, body: bytes) -> None:
        with self.world.lock:
            self.world.quotas |= msgspec.json.decode(body, type=dict[str, float])

    def control_restock(self, _: bytes) -> None:
        with self.world.lock:
            self.world.stock_outs.clear()

    def control_fault(self, body: bytes) -> None:
        with self.world.lock:
            self.world.faults.append(msgspec.json.decode(body, type=Fault))

    def control_clear_faults(self, _: bytes) -> None:
        with self.world.lock:
            self.world.faults.clear()

    def control_describe_delay(self, body: bytes) -> None:
        self.world.describe_delay = float(msgspec.json.decode(body))

    def control_describe_page(self, body: bytes) -> None:
        self.world.describe_page = int(msgspec.json.decode(body))

    def control_interrupt(self, body: bytes) -> None:
        request: dict[str, Any] = msgspec.json.decode(body)
        text = interruption_body(request["kind"], request["instance_id"], self.settings.region)
        backend("sqs", self.settings.region).send_message(self.settings.cluster_name, text)
        if request.get("terminate_after") is not None:
            timer = threading.Timer(request["terminate_after"], self._end, (request["instance_id"],))
            timer.daemon = True
            timer.start()

    def control_ail(self, body: bytes) -> None:
        with self.world.lock:
            self.world.ailments.append(msgspec.json.decode(body, type=Ailment))

    def control_recover(self, body: bytes) -> None:
        name = msgspec.json.decode(body)
        with self.world.lock:
            self.world.ailments = [one for one in self.world.ailments if one.instance_id != name]

    def control_terminate(self, body: bytes) -> None:
        self._end(msgspec.json.decode(body))

    def control_release_images(self, body: bytes) -> list[str]:
        version = msgspec.json.decode(body) or self.settings.kubernetes_version
        with self.world.lock:
            self._releases += 1
            return release_images(msgspec.structs.replace(self.settings, kubernetes_version=version), self._releases)

    def _end(self, instance_id: str) -> None:
        """EC2 itself ends an instance (a spot interruption, a failed host)."""
        with self.world.settled():
            self.world.end(backend("ec2", self.settings.region).get_instance(instance_id))


def _call(environ: Environ, body: bytes) -> tuple[str, str, str]:
    """(service, region, action) of an API call, from its signature and its form or target."""
    scope = _scope(environ)
    region, service = (scope[2], scope[3]) if len(scope) > 3 else ("", "")
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return service, region, target.rpartition(".")[2]
    if body.startswith(b"Action="):
        return service, region, body[7:].partition(b"&")[0].decode()
    if environ.get("PATH_INFO", "").startswith(_MANAGED):
        return service, region, "GetManagedResource"
    return service, region, f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"


def _scope(environ: Environ) -> list[str]:
    """Access key, date, region and service of a call's signature; one empty text when it has none.

    Source: AWS Signature Version 4, "Create a signed AWS API request".
    """
    text: str = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2]
    return text.split(",")[0].split("/")


def _refusal(service: str, fault: Fault) -> Answer:
    """An error in the service's own manner of writing one."""
    if service == "ec2":
        error = f"<Errors><Error><Code>{fault.code}</Code><Message>{fault.message}</Message></Error></Errors>"
        return fault.status, "text/xml", f"<Response>{error}<RequestID>kerf</RequestID></Response>".encode()
    if service in ("iam", "sts"):
        error = f"<Error><Code>{fault.code}</Code><Message>{fault.message}</Message></Error>"
        return fault.status, "text/xml", f"<ErrorResponse>{error}</ErrorResponse>".encode()
    error = json.dumps({"__type": fault.code, "message": fault.message})
    return fault.status, "application/x-amz-json-1.1", error.encode()


def _send(start_response: StartResponse, answer: Answer) -> Iterable[bytes]:
    status, kind, body = answer
    start_response(f"{status} kerf", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def _everything() -> Iterator[tuple[str, Any]]:
    """(region, instance) of all regions."""
    from moto.ec2.models import ec2_backends

    for account in ec2_backends.values():
        for region, data in account.items():
            for reservation in list(data.reservations.values()):
                for one in reservation.instances:
                    yield region, one


def _instance(region: str, one: Any) -> dict[str, Any]:
    return {
        "id": one.id,
        "region": region,
        "instance_type": one.instance_type,
        "zone": one.availability_zone,
        "state": one.state,
        "capacity_type": "spot" if one.lifecycle == "spot" else "on-demand",
        "image_id": one.image_id,
        "architecture": one.architecture,
        "subnet_id": one.subnet_id,
        "private_ip": one.private_ip if one.nics else "",
        "private_dns_name": one.private_dns_name if one.nics and one.private_ip else "",
        "launched": one.launch_time.timestamp(),
        "ended": getattr(one, "ended", None),
        "security_group_ids": sorted(group.id for group in one.security_groups),
        "profile_arn": (one.iam_instance_profile or {}).get("Arn", ""),
        "volume_gib": getattr(one, "largest_volume_gib", 0),
        "tags": tags_of(one),
        "user_data": _text(one.user_data),
    }


def _text(user_data: Any) -> str:
    return base64.b64decode(str(user_data)).decode(errors="replace") if user_data else ""


def serve(settings: MotoSettings, port: int, host: str = "127.0.0.1") -> None:
    """Serve until the process ends. The first line on standard output is the address."""
    gate = Gate(settings)
    server = make_server(host, port, gate, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://{host}:{server.server_port}"
    seed(settings, url)
    gate.world.calls.clear()
    print(url, flush=True)
    threading.Event().wait()


def serve_while_wanted(settings: Mapping[str, Any], port: int) -> None:
    """Serve until standard input ends: whoever started us holds its other end, and needs no last word to say."""

    def wait() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
    serve(msgspec.convert(settings, MotoSettings), port)
