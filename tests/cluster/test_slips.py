"""Each slip of a first installation is made on the real control plane, and `kerf preflight` names it, with its fix."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from kerf.cli.app import app
from kerf.runtime.preflight.slips import SLIPS, Slip

from .control_plane import ControlPlane
from .installation import CLUSTER_NAME
from .slips import AFTER, BEFORE, Whole

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
BY_NAME: Final = {one.slip: one for one in SLIPS}
#: This machine's clock is everybody's: `tests/unit/runtime/test_preflight_identity.py` has this slip.
ELSEWHERE: Final = {"the clock of this machine is wrong"}
Row = dict[str, str]


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with Whole(own_control_plane, tmp_path_factory.mktemp("slips")) as installation:
        installation.furnish()
        installation.wait(lambda: installation.holder() != "", 30, "the controller leads")
        yield installation


@pytest.fixture(scope="module")
def stage(kerf: Whole) -> Whole:
    """With a NodePool and an EC2NodeClass."""
    kerf.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
    return kerf


def preflight(kerf: Whole, *arguments: str, output: str = "json") -> Result:
    """As an administrator runs it, whose environment names no setting of Kerf."""
    where = () if "--kubeconfig" in arguments else ("--kubeconfig", str(kerf.control_plane.kubeconfig))
    return CliRunner().invoke(app, ["preflight", "-o", output, *where, *arguments], env=kerf.aws.environment())


def rows(kerf: Whole, *arguments: str) -> list[Row]:
    done = preflight(kerf, *arguments)
    assert done.exit_code in (0, 1), done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    found: list[Row] = answer["findings"]
    assert done.exit_code == (1 if any(row["result"] == "wrong" for row in found) else 0)
    assert answer["right"] + answer["wrong"] + answer["not_checked"] + answer["doubtful"] == len(found)
    return found


def line(row: Row) -> str:
    return f"{row['what']}: {row['seen']}" if row["seen"] else row["what"]


def matches(template: str, text: str) -> bool:
    """Whether a text is of this form; `…` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, template.split("…"))), text, re.DOTALL) is not None


def named(slip: Slip, found: list[Row]) -> list[Row]:
    return [row for row in found if matches(slip.line, line(row)) and row["result"] == "wrong"]


def checked(slip: Slip, found: list[Row]) -> None:
    """The slip is named, by its check, in its phase and with its fix."""
    wrong = [line(row) for row in found if row["result"] == "wrong"]
    assert named(slip, found), "\n".join(wrong)
    for row in named(slip, found):
        assert (row["check"], row["phase"]) == (slip.check.name, slip.check.phase)
        assert matches(slip.fix, row["fix"]) or matches(f"{slip.fix}…", row["fix"]), row["fix"]


def good(slip: Slip, found: list[Row]) -> None:
    own = [row for row in found if row["check"] == slip.check.name]
    assert own
    assert {row["result"] for row in own} == {"ok"}, [line(row) for row in own]


def test_every_slip_of_the_table_is_made() -> None:
    assert {*BEFORE, *AFTER} | ELSEWHERE == {*BY_NAME}


# --- before installation ------------------------------------------------------------------------------------------
TO_COME: Final = ("-n", "nowhere", "--cluster-name", CLUSTER_NAME)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("values") / "own.yaml"
    settings = f"settings: {{clusterName: {CLUSTER_NAME}, interruptionQueue: {CLUSTER_NAME}}}\n"
    file.write_text(settings + "controller: {image: {repository: registry.example.com/kerf}}\n")
    return file


@pytest.mark.parametrize("name", BEFORE)
def test_before_installation(kerf: Whole, values: Path, name: str) -> None:
    slip = BY_NAME[name]
    good(slip, rows(kerf, "-n", "nowhere", "--values", str(values)))
    with BEFORE[name](kerf):
        found = rows(kerf, *TO_COME)
    checked(slip, found)
    assert "after installation" not in {row["phase"] for row in found}


def test_before_installation_it_reports_what_it_assumes(kerf: Whole, values: Path) -> None:
    (one,) = [row for row in rows(kerf, *TO_COME) if row["check"] == "settings"]
    assert f"assuming INTERRUPTION_QUEUE={CLUSTER_NAME}, the default values of the chart" in one["seen"]
    (one,) = [row for row in rows(kerf, "-n", "nowhere", "--values", str(values)) if row["check"] == "settings"]
    assert one["seen"].endswith("a planned installation")
    done = preflight(kerf, "-n", "nowhere")
    assert done.exit_code == 2
    assert "Kerf is not installed" in done.stderr


# --- after installation -------------------------------------------------------------------------------------------
def test_without_a_slip_everything_is_right(stage: Whole) -> None:
    """With the settings of the installed controller, and no option."""
    stage.pulled({"running": {}})
    stage.wait(lambda: not [r for r in rows(stage) if r["result"] == "wrong"], 60, "nothing is wrong")
    done = preflight(stage, output="text")
    print(f"\n{done.stdout}")
    assert done.exit_code == 0
    assert re.search(r"^\d+ right, 0 wrong, 0 not checked, 0 doubtful$", done.stdout, re.MULTILINE)
    assert done.stdout.startswith("Before installation:\n")
    assert "\nAfter installation:\n" in done.stdout
    found = rows(stage)
    for slip in AFTER:
        good(BY_NAME[slip], found)


@pytest.mark.parametrize("name", AFTER)
def test_after_installation(stage: Whole, name: str) -> None:
    slip = BY_NAME[name]
    with AFTER[name](stage):
        checked(slip, rows(stage))


def test_once_all_slips_are_undone_none_is_named(stage: Whole) -> None:
    stage.pulled({"running": {}})
    found = rows(stage)
    assert [slip.slip for slip in SLIPS if named(slip, found)] == []


def test_who_lacks_a_permission_is_not_told_that_all_is_right(stage: Whole, tmp_path: Path) -> None:
    stage.kubectl("create", "serviceaccount", "nobody", "-n", "default")
    config = stage.control_plane.service_account_kubeconfig("default", "nobody", tmp_path / "nobody")
    found = rows(stage, "--kubeconfig", str(config), "--cluster-name", CLUSTER_NAME)
    assert not [line(row) for row in found if row["result"] == "wrong"], "it is not the controller's account"
    results = {row["check"]: row for row in found}
    for check in (
        *("settings", "region", "dns", "image", "webhook", "controller-clock", "controller-role", "permissions"),
        *("kinds", "node-pools", "node-classes", "node-role", "discovery", "spot-role", "agent", "queue"),
    ):
        assert results[check]["result"] == "not checked", check
        assert "needs " in results[check]["seen"]


@pytest.mark.parametrize(
    ("user", "cluster", "seen", "fix"),
    [
        ({"token": "expired"}, {}, "401 Unauthorized", "give valid credentials"),
        ({}, {}, "requests have no credentials", "give valid credentials"),
        (None, {"certificate-authority-data": None}, "CERTIFICATE_VERIFY_FAILED", "correct certificate-authority-data"),
        (None, {"server": "https://127.0.0.1:1"}, "Connection refused", "see that the address"),
    ],
)
def test_a_kubeconfig_that_is_wrong_has_its_own_fix(
    stage: Whole, tmp_path: Path, user: Any, cluster: dict[str, str | None], seen: str, fix: str
) -> None:
    document = json.loads(stage.control_plane.kubeconfig.read_text())
    if user is not None:
        document["users"][0]["user"] = user
    known = document["clusters"][0]["cluster"] | cluster
    document["clusters"][0]["cluster"] = {key: value for key, value in known.items() if value is not None}
    (tmp_path / "k").write_text(json.dumps(document))
    first, *others = rows(stage, "--kubeconfig", str(tmp_path / "k"), "--cluster-name", CLUSTER_NAME)
    assert (first["check"], first["result"], seen in first["seen"]) == ("api-server", "wrong", True), first
    assert first["fix"].startswith(fix)
    assert not any(row["check"] == "kinds" for row in others)
