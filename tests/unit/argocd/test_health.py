"""What Argo CD shows of our objects, by its own rules for scripts."""

from __future__ import annotations

import re

import pytest

from kerf_api import crds

from .cases import CASES, Change, Object, recorded, states
from .lua import Health, health, key_of, run, scripts


@pytest.mark.parametrize(("kind", "state", "changes", "status", "message"), CASES)
def test_what_is_shown(kind: str, state: str, changes: tuple[Change, ...], status: str, message: str) -> None:
    found = health(recorded(kind, state, *changes))
    assert found.status == status
    begin, cut, _ = message.partition("…")
    assert found.message.startswith(begin) if cut else found.message == message


def test_every_recorded_state_is_a_case() -> None:
    cases = {(kind, state) for kind, state, changes, *_ in CASES if not changes}
    assert cases == {(kind, state) for kind in crds.kinds() for state in states(kind)}


def test_every_kind_has_a_script() -> None:
    ours = {f"{crds.api_version(kind).rpartition('/')[0]}/{kind}" for kind in crds.kinds()}
    assert set(scripts()) == ours | {"argoproj.io/Application"}


@pytest.mark.parametrize("kind", sorted(crds.kinds()))
def test_an_object_that_nobody_has_looked_at_is_no_error(kind: str) -> None:
    """Nor is one of which almost nothing is there."""
    bare: Object = {"apiVersion": crds.api_version(kind), "kind": kind}
    for one in (bare, {**bare, "metadata": {"name": "x", "generation": 1}}, {**bare, "status": {"conditions": []}}):
        assert health(one).status == "Progressing"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({}, Health("Progressing", "not compared yet")),
        ({"health": {"status": "Healthy"}}, Health("Healthy", "")),
        ({"health": {"status": "Degraded", "message": "a pool"}}, Health("Degraded", "a pool")),
    ],
)
def test_an_application_is_as_healthy_as_what_it_manages(status: Object, shown: Health) -> None:
    one = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "status": status}
    assert key_of(one) in scripts()
    assert health(one) == shown


# --- the sandbox ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "script",
    [
        "string.format('x')",
        "('x'):upper()",
        "os.time()",
        "io.open('x')",
        "require('string')",
        "loadstring('')()",
        "debug.traceback()",
        "python.builtins()",
        "math.max(1)",
    ],
)
def test_scripts_have_no_more_than_argo_cd_gives_them(script: str) -> None:
    found = run(f"return {{status = {script}, message = ''}}", {})
    assert found.status == "Unknown"
    assert re.search(r"attempt to (call|index)", found.message)
