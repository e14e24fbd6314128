"""The planted bugs of Argo CD's health scripts and Applications: several are how scripts of others judge."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_SCRIPTS, _APPLICATIONS = "manifests/argocd/argocd-cm.yaml", "manifests/argocd/applications"
_HEALTH = ("tests/unit/argocd/test_health.py::test_what_is_shown",)


def _script(name: str, breaks: str, old: str, new: str) -> Bug:
    return Bug(name, breaks, (Edit(_SCRIPTS, old, new),), _HEALTH)


BUGS = (
    _script(
        "Ready of yesterday",
        "A changed object counts as Healthy until the controller has looked at it, and the next wave begins.",
        "conditions[name].observedGeneration == metadata.generation\n",
        "true\n",
    ),
    _script(
        "generation zero",
        "A condition without a generation counts for every one.",
        "conditions[name].observedGeneration == metadata.generation\n",
        "(conditions[name].observedGeneration or metadata.generation) == metadata.generation\n",
    ),
    _script(
        "Ready while it is being deleted",
        "An object that is being deleted looks as it did before.",
        "if metadata.deletionTimestamp ~= nil then",
        "if false then",
    ),
    _script(
        "deletions without a name",
        "Who holds up a deletion is not told.",
        "if #finalizers > 0 then",
        "if false then",
    ),
    _script(
        "held, and nobody sees it",
        "A deletion that waits for somebody's word looks like any other.",
        'health(is("DeletionHeld", "True") and "Suspended" or "Progressing", text)',
        'health("Progressing", text)',
    ),
    _script(
        "Disrupting",
        "A claim that is being replaced is looked up by a condition that nobody sets.",
        'if is("DisruptionReason", "True") then',
        'if is("Disrupting", "True") then',
    ),
    _script(
        "roll-outs that are over at once",
        "A NodePool is Healthy while its nodes are still the old ones.",
        'if is("UpToDate", "False") then',
        'if is("UpToDate", "Never") then',
    ),
    _script(
        "between the change and the comparison",
        "For the moment in which the change was seen, but the nodes were not compared with it, the pool is Healthy.",
        'if not current("UpToDate") then',
        "if false then",
    ),
    _script(
        "held is a failure",
        "A roll-out that somebody's pods hold up fails the sync.",
        'is("Stalled", "True") and "Suspended" or "Progressing"',
        'is("Stalled", "True") and "Degraded" or "Progressing"',
    ),
    _script(
        "held for a moment",
        "A budget of pods that is used up for a moment suspends the roll-out.",
        'is("Stalled", "True") and',
        "conditions.Stalled ~= nil and",
    ),
    _script(
        "a class that is being looked at fails its pools",
        "Whenever a node class is changed the sync of its NodePools fails.",
        "NodeClassReadinessUnknown = true, ",
        "",
    ),
    _script(
        "one fault hides behind another",
        "A real fault is excused because something else has to come first as well.",
        "excused = excused and passing",
        "excused = passing",
    ),
    _script(
        "nodes that do not join",
        "The new nodes of a NodePool never join, and its roll-out goes on being awaited.",
        '{"BudgetsValid", "NodeRegistrationHealthy"}',
        '{"BudgetsValid"}',
    ),
    _script(
        "spare room that was not asked for",
        "A CapacityBuffer of no pods is awaited for ever.",
        ' and conditions.Provisioning.reason ~= "BufferEmpty"',
        "",
    ),
    _script(
        "a script with other libraries",
        "Lua's string library is not there in Argo CD: the state of every object becomes unknown.",
        'or health("Healthy", "")\n',
        'or health("Healthy", string.lower(""))\n',
    ),
    Bug(
        "pools pruned at once",
        "A NodePool that is gone from Git is deleted, and its nodes are drained, without a question.",
        (Edit(f"{_APPLICATIONS}/4-node-pools.yaml", "sync-options: Prune=confirm,Delete=confirm", "note: none"),),
        ("tests/unit/argocd/test_applications.py::test_pruning_asks_first",),
    ),
    Bug(
        "definitions pruned",
        "A definition that is gone from Git takes every object of its kind along.",
        (Edit(f"{_APPLICATIONS}/1-definitions.yaml", "prune: false", "prune: true"),),
        ("tests/unit/argocd/test_applications.py::test_pruning_asks_first",),
    ),
    Bug(
        "pools before their classes",
        "NodePools come in the wave of their node classes.",
        (Edit(f"{_APPLICATIONS}/4-node-pools.yaml", 'sync-wave: "2"', 'sync-wave: "1"'),),
        ("tests/unit/argocd/test_applications.py::test_waves",),
    ),
)
