"""Plays Flux's source-controller: folders as the artifacts of GitRepositories, served on the loopback interface.

Of a GitRepository the real one clones the address; here each name stands for a folder. What becomes of that is as
with the real one: a tar.gz of the files, told in the object's status with revision and digest, and the condition Ready.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kubernetes import client

GROUP, VERSION, PLURAL = "source.toolkit.fluxcd.io", "v1", "gitrepositories"


class Sources:
    """A context manager; `folder` keeps the artifacts. `api` speaks with the API server."""

    def __init__(self, api: client.CustomObjectsApi, folder: Path, namespace: str) -> None:
        self._api, self._folder, self._namespace = api, folder, namespace
        folder.mkdir(parents=True, exist_ok=True)
        handler = partial(_Quiet, directory=str(folder))
        self._server: Final = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread: Final = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def publish(self, name: str, tree: Path) -> str:
        """What the folder holds now becomes the GitRepository's artifact; the revision, which the files make."""
        content = _packed(tree)
        revision = f"main@sha1:{hashlib.sha1(content, usedforsecurity=False).hexdigest()}"
        path = f"{name}-{revision[-8:]}.tar.gz"
        (self._folder / path).write_bytes(content)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        artifact = {
            "path": path,
            "url": f"http://127.0.0.1:{self._server.server_port}/{path}",
            "revision": revision,
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "size": len(content),
            "lastUpdateTime": now,
        }
        place = (GROUP, VERSION, self._namespace, PLURAL, name)
        stored = self._api.get_namespaced_custom_object(*place)
        assert isinstance(stored, dict)
        generation = stored["metadata"]["generation"]
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": f"stored {revision}"}
        conditions = [{**ready, "lastTransitionTime": now, "observedGeneration": generation}]
        status = {"observedGeneration": generation, "artifact": artifact, "conditions": conditions}
        self._api.patch_namespaced_custom_object_status(*place, {"status": status})
        return revision


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base
        return


def _packed(tree: Path) -> bytes:
    """The same files give the same bytes; Git's own are left out, as by the real one."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(path for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts):
            row = tarfile.TarInfo(str(path.relative_to(tree)))
            row.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(row, content)
    return gzip.compress(packed.getvalue(), mtime=0)
