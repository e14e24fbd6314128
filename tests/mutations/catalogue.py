"""Behaviours of the scheduling catalogue, each with the bug that its test dies of; and the draw that says of which.

A seed draws thirty of all the catalogue's numbers, whatever is built so far, so a number that is drawn stays drawn. One
that has a test needs a bug here, and one that gets a test later will (`test_mutations.py` says so). The referee, who
looks at every answer that these tests get, is sent out of the room: a test has to see by itself what its name says.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.mutations.bug import Bug, Edit
from tests.unit.scheduling.test_catalogue_is_complete import NUMBERS, numbered_tests

SEED = 20261122
DRAWN = 30
_NO_REFEREE = Edit(
    "tests/unit/scheduling/catalogue_world.py", "    assert violations(snapshot, pods, solution) == []\n", ""
)
NO_BUG, NO_TEST = "has no bug planted here", "is not built yet: it has no test"
_TESTS = numbered_tests()


def drawn(seed: int) -> list[int]:
    """Thirty numbers of the catalogue, in the order in which they are drawn."""
    return random.Random(seed).sample(NUMBERS, DRAWN)


def broken(numbers: Iterable[int]) -> list[Bug]:
    """The bugs of these numbers, of those that have one."""
    return [BROKEN[number] for number in numbers if number in BROKEN]


def lacking(numbers: Iterable[int]) -> dict[int, str]:
    """What the others lack: a bug, or even the test that would find it."""
    return {n: NO_BUG if n in _TESTS else NO_TEST for n in numbers if n not in BROKEN}


def _breaks(number: int, sentence: str, *edits: Edit) -> tuple[int, Bug]:
    return number, Bug(f"{number:03d}", sentence, (*edits, _NO_REFEREE), tuple(_TESTS.get(number, ())))


def _in(file: str, old: str, new: str) -> Edit:
    return Edit(f"reconciler/{file}", old, new)


BROKEN = dict(
    (
        _breaks(
            5,
            "A NodePool that is being deleted makes nodes.",
            _in("scheduling/world.py", "return not pool.metadata.deleting and any(", "return any("),
        ),
        _breaks(
            10,
            "Pods on a node that goes are not thought of.",
            _in(
                "provisioning/pending.py",
                "if not state.deleting or state.node is None:",
                "if state.deleting or state.node is None:",
            ),
        ),
        _breaks(
            16,
            "A pod may want another value of a label than the NodePool gives.",
            _in(
                "scheduling/template.py",
                "known = self.requirements.incompatible(wanted, labels.WELL_KNOWN) is None",
                "known = all(key in self.requirements or key in labels.WELL_KNOWN for key in wanted)",
            ),
            _in(
                "scheduling/template.py",
                "both = one & other if one.conflict(other) is None else None",
                "both = one & other",
            ),
        ),
        _breaks(
            44,
            "PREFERENCE_POLICY Ignore leaves preferred anti-affinity in force.",
            _in(
                "scheduling/requirements_of.py",
                "_heaviest_first(far.preferred) if far is not None and respect_preferences else ()",
                "_heaviest_first(far.preferred) if far is not None else ()",
            ),
        ),
        _breaks(
            59,
            "An init container is reckoned without the sidecars that started before it.",
            _in("model/pods.py", "peak = peak.maximum(sidecars + needs)", "peak = peak.maximum(needs)"),
        ),
        _breaks(
            61,
            "A request of 0 of something that nothing has cannot be met.",
            _in("scheduling/types.py", "if value > 0 and name not in self._at", "if name not in self._at"),
        ),
        _breaks(
            67,
            "Offerings that are not to be had count.",
            _in("scheduling/types.py", "                elif o.available:\n", "                else:\n"),
        ),
        _breaks(
            73,
            "Labels of nodes that are there are not looked at.",
            _in(
                "scheduling/places.py",
                "self.open & self.tolerating(demand.tolerations) & self._serving(demand.requirements)",
                "self.open & self.tolerating(demand.tolerations)",
            ),
        ),
        _breaks(
            77,
            "A start-up taint keeps pods away from a node that is starting.",
            _in("model/snapshot.py", " and not any(t.matches(s) for s in startup)", ""),
        ),
        _breaks(
            93,
            "A daemon set is kept away by a taint that is only soft.",
            _in(
                "scheduling/daemons.py",
                "tolerates_all((*self.tolerations, _SOFT), taints)",
                "tolerates_all(self.tolerations, taints)",
            ),
        ),
        _breaks(
            99,
            "Daemons that take more than was expected of them leave more room than there is.",
            _in(
                "scheduling/targets.py",
                "still = np.maximum(self._shares.on(site) - vector(there.daemon_used), 0)",
                "still = self._shares.on(site) - vector(there.daemon_used)",
            ),
        ),
        _breaks(
            100,
            "A daemon set that waits for an initialised node is not expected on a new one.",
            _in(
                "scheduling/daemons.py",
                "for key in (labels.REGISTERED, labels.INITIALIZED))",
                "for key in (labels.REGISTERED,))",
            ),
        ),
        _breaks(
            103,
            "A claim's requests are those of its pods, without the daemons'.",
            _in("scheduling/planned.py", "(done.used + listed.overhead).tolist()", "done.used.tolist()"),
        ),
        _breaks(
            112,
            "A NodePool counts as ready when it says anything of that.",
            _in("scheduling/world.py", 'any(c.type == "Ready" and c.status == "True" for', 'any(c.type == "Ready" for'),
        ),
        _breaks(
            121,
            "One value is enough for minValues.",
            _in("scheduling/template.py", "if count < wanted[key]}", "if not count}"),
        ),
        _breaks(
            127,
            "BestEffort leaves the claim's minValues as they were.",
            _in(
                "scheduling/planned.py",
                "requirements, relaxed = requirements.with_min_values(key, count or None), True",
                "relaxed = True",
            ),
        ),
        _breaks(
            128,
            "A NodePool that misses its minValues is passed over under BestEffort, too.",
            _in(
                "scheduling/world.py", "if template.strict_min_values and template.shortfall(", "if template.shortfall("
            ),
        ),
        _breaks(
            130,
            "A pod whose volume cannot be had is placed as if it had none.",
            _in("scheduling/solve.py", "broken[pod.key] = error", "demands[pod.key] = (EMPTY,)"),
        ),
        _breaks(
            133,
            "Only volumes of the node itself bind a pod to a place.",
            _in(
                "scheduling/volumes.py",
                "if _is_local(volume) else t for t in found)",
                "if _is_local(volume) else EMPTY for t in found)",
            ),
        ),
        _breaks(
            136,
            "Of a volume's alternatives only the first is tried.",
            _in("scheduling/volumes.py", "good[:_MOST_ALTERNATIVES] or", "good[:1] or"),
        ),
        _breaks(
            146,
            "A spread counts only pods on nodes that it does not count.",
            _in(
                "scheduling/tallies.py",
                "if domain is not None and admitted[node.name]:",
                "if domain is not None and not admitted[node.name]:",
            ),
        ),
        _breaks(
            158,
            "Only zones and capacity types are domains of a spread.",
            _in(
                "scheduling/topology.py",
                "if group.kind == SPREAD and group.key != labels.HOSTNAME:",
                "if group.kind == SPREAD and group.key in (labels.ZONE, labels.CAPACITY_TYPE):",
            ),
        ),
        _breaks(
            161,
            "Values of a label that only the NodePool knows are no domains.",
            _in(
                "scheduling/template.py",
                "known = listed if listed or row.complement else set(row.values)",
                "known = listed",
            ),
        ),
        _breaks(
            162,
            "Domains of a NodePool at its limits do not count.",
            _in(
                "scheduling/topology.py",
                "for template in self._templates:",
                "for template in (one for one in self._templates if not one.remaining):",
            ),
        ),
        _breaks(
            172,
            "A pod that wants company on its host is seated without it.",
            _in("scheduling/company.py", "if not first and not any(", "if not first and any("),
        ),
        _breaks(
            178,
            "Of anti-affinity only what is preferred is looked at.",
            _in(
                "scheduling/requirements_of.py",
                "far + tuple(w.pod_affinity_term for w in wishes.anti_affinity)",
                "tuple(w.pod_affinity_term for w in wishes.anti_affinity)",
            ),
        ),
        _breaks(
            181,
            "Pods that run keep nobody away whom they shun.",
            _in(
                "scheduling/tallies.py",
                "if domain is not None and key not in shun.homes:",
                "if domain is not None and key in shun.homes:",
            ),
        ),
        _breaks(
            184,
            "Only pods that run are company, not those that are planned.",
            _in(
                "scheduling/topology.py",
                "if entry[1].selects(namespace, own)]",
                "if entry[1].selects(namespace, own) and entry[1].kind != AFFINITY]",
            ),
        ),
        _breaks(
            206,
            "Kept room is counted by the pods that exist, not by the virtual ones.",
            _in("provisioning/buffers.py", "if key not in turn.snapshot.pods:", "if key in turn.snapshot.pods:"),
        ),
    )
)
