"""The demo reaches its goals, tells nothing twice, and is what its picture in the README shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from rich.console import Console

from kerf.cli.answering import captures
from kerf.cli.demonstration.demo import Demo, Summary, manifests
from kerf.cli.demonstration.screen import LineScreen
from kerf.cli.verbs import show
from kerf.cli.verbs.show import NEXT, print_numbers
from kerf.snapshots import files, reading
from kerf.views.board import board
from tests.pictures.demo import PICTURE, console, drawn


class Played:
    """The demo, run once on a terminal that keeps what is printed."""

    def __init__(self) -> None:
        self.screen: Console = console()
        self.demo = Demo(LineScreen(self.screen, wrapped=True), pause_seconds=0)
        self.summary: Summary = self.demo.run()
        print_numbers(self.screen, self.summary)


@pytest.fixture(scope="module")
def played() -> Played:
    return Played()


def test_every_goal_is_reached(played: Played) -> None:
    done = played.summary
    assert done.unmet == []
    assert (done.spot_reclaims_survived, done.most_drifting_at_once) == (1, 1)
    assert done.cost_after_usd_per_hour < done.cost_before_usd_per_hour * 2 / 3
    assert [refused["manifest"] for refused in done.manifests_refused] == ["NodePool mistake"]
    assert len(done.pods_refused) == 1


def test_no_line_is_there_twice(played: Played) -> None:
    lines = [line.strip() for line in played.screen.export_text(clear=False).splitlines() if line.strip()]
    assert len(lines) == len(set(lines))


def test_the_picture_is_of_this_run(played: Played) -> None:
    assert drawn(played.screen) == PICTURE.read_text(encoding="utf-8"), "python -m tests.pictures.demo draws it again"


def test_three_things_to_do_follow() -> None:
    assert len(NEXT.strip().splitlines()[1:]) == 3


def test_the_saved_cluster_is_that_of_the_end(played: Played) -> None:
    data = captures.compressed(played.demo.captured())
    found = board(reading.read(files.lines([data])).snapshot)
    assert (len(found.nodes), found.waiting) == (played.summary.nodes, 1)
    (waiting,) = found.pending
    assert waiting.answer.pod == played.summary.pods_refused[0]["pod"]


def test_the_command_saves_a_file_for_the_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(demo: Demo) -> Summary:
        demo.world.apply(manifests("NodePool")[0])
        demo.controller.tick()
        return demo.summary

    monkeypatch.setattr(Demo, "run", short)
    path = tmp_path / "demo.snapshot"
    show.demo(as_json_object=False, seed=1, speed=1, snapshot=str(path))
    assert captures.of_file(str(path)).snapshot.node_pools.keys() == {"general"}
    assert f"kerf ui --snapshot {path}" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_refused_before_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Demo, "run", lambda _: pytest.fail("the demo began"))
    with pytest.raises(typer.Exit) as ended:
        show.demo(as_json_object=False, seed=1, speed=1, snapshot=str(tmp_path / "no" / "demo.snapshot"))
    assert ended.value.exit_code == 2
    assert "No such file or directory; create the folder" in capsys.readouterr().err
