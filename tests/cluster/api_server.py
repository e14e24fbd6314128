"""The real API server as a judge of the corpus: Kerf's definitions as they are shipped, and no webhook."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes import config

from kerf_api import crds
from tests.unit.api.corpus import Case
from tests.unit.api.manifests import BASES

from .control_plane import ControlPlane

CRDS: Final = Path(__file__).resolve().parents[2] / "manifests/crds"
STRICT: Final = "fieldValidation=Strict&fieldManager=test"
DRY: Final = f"dryRun=All&{STRICT}"
SERVED_SECONDS: Final = 30.0
#: The API server deletes each kind's objects first: on a busy machine, and after a restart of it, that takes minutes.
DELETED_SECONDS: Final = 360.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and the object as it would be stored, or the refusal."""

    status: int
    body: dict[str, Any]

    @property
    def accepted(self) -> bool:
        return self.status in (200, 201)

    @property
    def message(self) -> str:
        """The words of a refusal."""
        return str(self.body.get("message", ""))


class ApiServer:
    """The API server over one kept connection, as administrator. All questions are dry runs, validated strictly."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._client: Any = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]
        self._old: dict[str, Any] | None = None
        self._stored: dict[str, Any] = {}

    def close(self) -> None:
        self._hold("", None)
        self._client.close()

    def judge(self, case: Case) -> Answer:
        """What it says to a creation, or to a change of an object that is stored for the question."""
        self._hold(case.kind, case.old)
        if case.old is None:
            return self._ask("POST", f"{_path(case.kind)}?{DRY}", case.manifest)
        stored = self._stored["metadata"]
        metadata = {**case.manifest["metadata"], "resourceVersion": stored["resourceVersion"]}
        return self._ask("PUT", f"{_path(case.kind)}/{stored['name']}?{DRY}", {**case.manifest, "metadata": metadata})

    def judge_text(self, kind: str, text: str) -> Answer:
        """What it says to the creation of an object that is sent as YAML."""
        return self._send("POST", f"{_path(kind)}?{DRY}", text, "application/yaml")

    def serves(self, kind: str) -> bool:
        """Whether objects of this kind can be made; for a moment after its definition they cannot."""
        return self._ask("POST", f"{_path(kind)}?{DRY}", BASES[kind]).accepted

    def _hold(self, kind: str, old: dict[str, Any] | None) -> None:
        """Store this object and none else; cases that change the same object come one after the other."""
        if old == self._old:
            return
        if self._old is not None:
            name = self._stored["metadata"]["name"]
            self._ask("DELETE", f"{_path(self._stored['kind'])}/{name}", None)
        self._old = None
        if old is not None:
            answer = self._ask("POST", f"{_path(kind)}?{STRICT}", old)
            assert answer.accepted, answer.body
            self._old, self._stored = old, answer.body

    def _ask(self, method: str, path: str, manifest: dict[str, Any] | None) -> Answer:
        body = json.dumps(manifest) if manifest is not None else None
        return self._send(method, path, body, "application/json")

    def _send(self, method: str, path: str, body: str | None, form: str) -> Answer:
        answer = self._client.rest_client.pool_manager.request(
            method,
            self._client.configuration.host + path,
            body=body,
            headers={"Content-Type": form, "Accept": "application/json"},
            timeout=10.0,
        )
        return Answer(answer.status, json.loads(answer.data) if answer.data[:1] == b"{" else {})


def _path(kind: str) -> str:
    place = "namespaces/default/" if crds.is_namespaced(kind) else ""
    return f"/apis/{crds.api_version(kind)}/{place}{crds.load(kind)['spec']['names']['plural']}"


@contextmanager
def with_definitions(cluster: ControlPlane) -> Iterator[ApiServer]:
    """The API server with the shipped definitions; they are taken away afterwards, for tests that install a chart."""
    cluster.kubectl("create", "-f", str(CRDS))
    server = ApiServer(cluster)
    try:
        deadline = time.monotonic() + SERVED_SECONDS
        while not all(server.serves(kind) for kind in crds.kinds()):
            assert time.monotonic() < deadline, "the definitions are not served"
            time.sleep(0.1)
        yield server
    finally:
        server.close()
        cluster.kubectl("delete", "-f", str(CRDS), "--wait", timeout=DELETED_SECONDS)
