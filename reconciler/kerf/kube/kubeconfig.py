"""The configuration of a client from a kubeconfig, with one line for every fault of the file.

The official client names neither the contexts of the file nor a credential plugin that fails: it calls the API server
without credentials instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.config import kube_config

from kerf.kube.transport import readable
from kerf_api.lint import nearest
from kerf_api.texts import shortened

_NAMED = 10


def configured(path: str | None, context: str | None) -> Configuration:
    """As kubectl would: `path` or KUBECONFIG or ~/.kube/config. Raises Unavailable."""
    with readable(f"kubeconfig {path}" if path else "kubeconfig"):
        user = _user(path or kube_config.KUBE_CONFIG_DEFAULT_LOCATION, context)
        configuration = Configuration()
        with _logged() as said:
            config.load_kube_config(path, context, configuration, persist_config=False)  # type: ignore[no-untyped-call]
        if "exec" in user and not (configuration.api_key or configuration.cert_file):
            why = f": {said[-1]}" if said else ""
            raise ValueError(f"the credential plugin {user['exec'].get('command')} returned no credentials{why}")
        return configuration


def _user(paths: str, context: str | None) -> Mapping[str, Any]:
    """The user of the context. Raises ValueError when there is no such context or user."""
    merged = kube_config.KubeConfigMerger(paths).config  # type: ignore[no-untyped-call]
    if merged is None:
        raise ValueError(f"there is no file {paths}")
    found = merged.value
    contexts = {str(row.value["name"]): row.value["context"] for row in found["contexts"]}
    wanted = context or found.get("current-context")
    known = f"; contexts: {shortened(sorted(contexts), _NAMED) or 'none'}"
    if not wanted:
        raise ValueError(f"no context is the current one, and --context names none{known}")
    if wanted not in contexts:
        raise ValueError(f"there is no context {wanted}{nearest.meant(wanted, contexts)}{known}")
    name = contexts[wanted].get("user")
    users = {row.value["name"]: row.value.get("user") or {} for row in found["users"]}
    if name and name not in users:
        raise ValueError(f"context {wanted} names user {name}, and there is no such user")
    return users.get(name, {})


@contextmanager
def _logged() -> Iterator[list[str]]:
    """The messages of errors that the official client logs meanwhile, in place of lines on standard error."""
    said: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield said
    finally:
        root.removeHandler(handler)
