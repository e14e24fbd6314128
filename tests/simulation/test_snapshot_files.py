"""Seeds of chaos in files of snapshots: a file has the plan of its snapshot, with pseudonyms up to names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import pytest

from kerf.decide import decide
from kerf.model.aws.cloud import Region
from kerf.model.aws.instance_type import Catalogue
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.snapshot import Snapshot
from kerf.runtime.state.catalogues import Catalogues
from kerf.snapshots import actions, naming
from kerf.snapshots.captured import Captured
from kerf.snapshots.reading import read
from kerf.snapshots.sanitizing import Sanitizer
from kerf.snapshots.writing import lines
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.simulation import chaos
from tests.simulation.scripts import script

KEY = b"key"
#: One plan in so many is made a second time, of the file, and one in so many of the file with pseudonyms.
ONE_IN = 40


def _told(plan: Plan, snapshot: Snapshot) -> list[object]:
    """All of a plan, with its actions as a file has them."""
    cleaner = Sanitizer(KEY, snapshot)
    return [[actions.to_plain(one, cleaner) for one in plan.actions], plan.refusals, plan.events, plan.next_due]


def _form(plan: Plan) -> tuple[Counter[object], Counter[object], Counter[str], datetime | None]:
    """A plan without names."""
    done = Counter[object]((type(one), getattr(one, "verb", ""), one.reason.code) for one in plan.actions)
    refused = Counter[object]((one.subject.partition("/")[0], one.reason.code) for one in plan.refusals)
    return done, refused, Counter(one.reason for one in plan.events), plan.next_due


@pytest.mark.parametrize("seed", [6, 130])
def test_a_file_decides_as_the_snapshot_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Plan] = []
    regions: list[Region | None] = []
    differing: list[str] = []
    compared = Counter[str]()

    def built(self: Catalogues, classes: Iterable[EC2NodeClass]) -> Mapping[str, Catalogue]:
        """Note the region from whose facts the types of the next snapshot are."""
        regions[:] = [self.region]
        return computed(self, classes)

    def compare(what: str, before: object, after: object) -> None:
        compared[what] += 1
        if before != after:
            differing.append(f"plan {len(made)}, {what}: {before}\nand {after}")

    def deciding(snapshot: Snapshot, memory: Memory | None = None) -> Plan:
        plan = decide(snapshot, memory or Memory())
        made.append(plan)
        if len(made) % ONE_IN in (0, 1):
            found = Captured(snapshot.detached(), regions[0])
            before = decide(found.snapshot)
            if len(made) % ONE_IN:
                compare("pseudonyms", _form(before), _form(decide(read(naming.renamed(lines(found, KEY))).snapshot)))
            else:
                after = decide(read(lines(found, KEY)).snapshot)
                compare("file", _told(before, snapshot), _told(after, snapshot))
        return plan

    computed = Catalogues.catalogues
    monkeypatch.setattr(Catalogues, "catalogues", built)
    monkeypatch.setattr(chaos, "decide", deciding)
    assert not chaos.play(script(seed)).violation
    assert not differing, differing[0]
    assert min(compared["file"], compared["pseudonyms"]) >= 12
