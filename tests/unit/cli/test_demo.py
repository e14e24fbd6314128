"""The demo reaches its goals, tells nothing twice, and is what its picture in the README shows."""

from __future__ import annotations

import pytest
from rich.console import Console

from kerf.cli.demonstration.demo import Demo, Summary
from kerf.cli.demonstration.screen import LineScreen
from kerf.cli.verbs.show import NEXT, print_numbers
from tests.pictures.demo import PICTURE, console, drawn


class Played:
    """The demo, run once on a terminal that keeps what is printed."""

    def __init__(self) -> None:
        self.screen: Console = console()
        self.summary: Summary = Demo(LineScreen(self.screen, wrapped=True), pause_seconds=0).run()
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
