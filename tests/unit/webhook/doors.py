"""Both doors of a running webhook, asked about a case of the corpus over HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import jsonpatch

from kerf_api.lint import Problem
from tests.unit.api.corpus import Case

from .reviews import patch_of, review
from .test_server import ask

DOORS: Final = ("/mutate", "/validate")
#: How many problems a refusal tells.
TOLD: Final = 10

Reply = dict[str, Any]


def reply(connection: http.client.HTTPSConnection, door: str, case: Case) -> Reply:
    """What one door says to it."""
    operation = "CREATE" if case.old is None else "UPDATE"
    return ask(connection, door, review(case.manifest, old=case.old, operation=operation, kind=case.kind))


def differs(errors: Sequence[Problem], said: Reply) -> str:
    """How a reply differs from what `validate` found; empty when it does not.

    They agree when both accept, or both refuse and the reply names rule and place of every error there is room for.
    """
    if said["allowed"] is bool(errors):
        return "accepts it" if said["allowed"] else f"refuses it: {said['status']['message']}"
    message = said["status"]["message"] if errors else ""
    missing = [e for e in errors[:TOLD] if f"{e.path}: " not in message or f"[{e.rule}]" not in message]
    return f"does not name {', '.join(f'{e.rule} at {e.path}' for e in missing)}: {message}" if missing else ""


def patched(case: Case, said: Reply) -> Case:
    """The case with the manifest as the API server would go on with it after this reply."""
    return replace(case, manifest=jsonpatch.apply_patch(case.manifest, patch_of(said)))
