"""The page of a plan: before and after by NodePool, as `kerf plan` computes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from kerf.cli.answering import changed
from kerf.cli.answering.boards import Boards
from kerf.cli.demonstration.demo import manifests
from kerf.cli.verbs import plan
from kerf.cli.web import planned as plans
from kerf.cli.web.history import History
from kerf.cli.web.planned import Planned
from kerf.planning.approvals import Approval
from kerf.snapshots import files
from kerf.snapshots.captured import Captured
from kerf.snapshots.writing import lines
from tests.unit.records.lives import Life
from tests.unit.snapshots.worlds import busy
from tests.unit.views import worlds
from tests.unit.views.test_page import client, page


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A NodePool with another label on its nodes."""
    file = tmp_path_factory.mktemp("plan") / "pool.yaml"
    pool = json.loads(json.dumps(next(one for one in manifests("NodePool") if one["metadata"]["name"] == "general")))
    pool["spec"]["template"]["metadata"]["labels"]["team"] = "web-platform"
    file.write_text(json.dumps(pool))
    return str(file)


def planned(path: str, capture: Callable[[], Captured] = busy) -> Planned:
    """The computed plan of a change."""
    made = Planned(changed.of_files([path]), capture)
    made.compute()
    return made


def asked(made: Planned) -> FlaskClient:
    """The page with a plan."""
    return client(Boards(worlds.origin(busy().snapshot)), plan=made)


@pytest.fixture(scope="module")
def found(path: str) -> Planned:
    return planned(path)


def test_the_numbers_are_those_of_kerf_plan(found: Planned, path: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "now.snapshot"
    file.write_bytes(files.compressed(lines(busy(), b"")))
    assert plan.main([path, "--snapshot", str(file), "-o", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    disrupted = Counter(one["node"]["nodepool"] for one in printed["planned"]["departures"])
    assert {one.name: one.disrupted for one in found.pools if one.disrupted} == disrupted
    launched = Counter(one["nodepool"] for one in printed["planned"]["arrivals"])
    assert {one.name: one.launched for one in found.pools if one.launched} == launched
    assert sum(one.after for one in found.pools) == printed["now"]["nodes"] - disrupted.total() + launched.total()
    assert sum(one.price_after for one in found.pools) == sum(printed["planned"]["cost"].values())
    assert disrupted["general"] > 0


def test_the_page_has_both_sides_and_the_reason(found: Planned) -> None:
    text = asked(found).get("/plan").text
    general = next(one for one in found.pools if one.name == "general")
    row = text.split('<th scope="row">general</th>')[1].split("</tr>")[0]
    assert f'<td class="n">{general.before}</td><td class="n">{general.after}</td>' in row
    assert f"${general.price_before / 1e6:,.3f}/h" in row
    assert "Drifted" in text.split('id="disrupted"')[1]
    assert "until nothing more happens" in text


def test_a_plan_names_the_time_of_its_cluster(found: Planned) -> None:
    assert f"as of {busy().snapshot.now:%Y-%m-%d %H:%M:%S} UTC" in asked(found).get("/plan").text


def test_a_plan_is_not_shown_for_another_time(found: Planned, tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.live(1)
    life.recorder.close()
    history = History(str(life.folder), pytest.fail)
    tried = client(Boards(worlds.origin(history.latest().snapshot)), history, found)
    text = tried.get("/plan?moment=0").text
    assert "latest decision of the record, not for the time of this page" in text
    assert '<a href="/plan">Show the plan' in text
    assert "NodePools before and after" not in text
    assert "NodePools before and after" in tried.get("/plan").text


def test_a_large_cluster_is_estimated(path: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(plans, "MOST_SIMULATED", 1)
    made = planned(path)
    assert made.found is not None
    assert not made.found.planned.simulated
    assert "not simulated" in asked(made).get("/plan").text


def test_a_plan_that_is_not_computed_yet_says_so(path: str) -> None:
    made = Planned(changed.of_files([path]), busy)
    assert "The plan is being computed" in asked(made).get("/plan").text


def test_an_error_of_the_change_is_shown(path: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    bad = json.loads(Path(path).read_text())
    bad["spec"]["template"]["spec"]["expireAfter"] = "soon"
    file.write_text(json.dumps(bad))
    made = planned(str(file))
    assert made.found is None
    assert "expireAfter" in asked(made).get("/plan").text


def test_without_a_change_the_page_says_how_to_give_one() -> None:
    assert "--plan changed.yaml" in page(worlds.cluster()).get("/plan").text


def test_the_digest_that_approves_a_change_is_shown(found: Planned, path: str) -> None:
    made = Planned(changed.of_files([path]), busy)
    assert found.found is not None
    made.at = found.at
    made.found = replace(found.found, approvals=(Approval("general", "0123456789abcdef", approved=False),))
    assert "kerf.sh/approved-plan: 0123456789abcdef" in asked(made).get("/plan").text
