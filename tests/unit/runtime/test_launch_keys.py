"""A launch mark covers cluster, NodeClaim, group and the whole request, and nothing that was changed since."""

from __future__ import annotations

import pytest

from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.kinds import NODE_CLAIM, Ref
from kerf.model.plan import DeleteObject, PatchObject, Reason
from kerf.ports import Unavailable
from kerf.runtime.secrets.launch_keys import Checked, LaunchKeys
from kerf_api import labels

KEY, OTHER = b"k" * 32, b"o" * 32
LAUNCH = MarkedLaunch("uid-a", "group", '{"group": "group"}')


def keys(current: bytes = KEY, *earlier: bytes, cluster: str = "c") -> LaunchKeys:
    found = LaunchKeys(cluster)
    found.use(current, earlier)
    return found


def notes(mark: str, **changed: str) -> dict[str, str]:
    rows = {labels.LAUNCH_GROUP: LAUNCH.group, labels.LAUNCH_REQUEST: LAUNCH.request, labels.LAUNCH_MARK: mark}
    return {**rows, **changed}


def test_a_mark_covers_the_group_and_the_request() -> None:
    assert keys().check("uid-a", notes(keys().mark(LAUNCH))) == Checked(True, True)


def test_without_the_request_the_group_stays_covered() -> None:
    rows = notes(keys().mark(LAUNCH))
    del rows[labels.LAUNCH_REQUEST]
    assert keys().check("uid-a", rows) == Checked(True, False)


@pytest.mark.parametrize("text", ["", "{}", '{"group": "group"} ', '{"group":"group"}'])
def test_another_request_is_not_covered(text: str) -> None:
    rows = notes(keys().mark(LAUNCH), **{labels.LAUNCH_REQUEST: text})
    assert keys().check("uid-a", rows) == Checked(True, False)


def test_neither_another_claim_nor_another_group_nor_another_cluster_is_covered() -> None:
    mark = keys().mark(LAUNCH)
    assert keys().check("uid-b", notes(mark)) == Checked()
    assert keys().check("", notes(mark)) == Checked()
    assert keys().check("uid-a", notes(mark, **{labels.LAUNCH_GROUP: "other"})) == Checked()
    assert keys().check("uid-a", notes(mark, **{labels.LAUNCH_GROUP: ""})) == Checked()
    assert keys(cluster="d").check("uid-a", notes(mark)) == Checked()
    assert keys(OTHER).check("uid-a", notes(mark)) == Checked()


def test_the_parts_of_a_mark_cannot_be_put_together_otherwise() -> None:
    digest, _, code = keys().mark(LAUNCH).partition(".")
    other, _, _ = keys().mark(MarkedLaunch("uid-a", "group", "{}")).partition(".")
    for mark in (f"{other}.{code}", code, f".{code}", digest, f"{digest}.", f"{digest}.{code}0", f"{digest}.é", "."):
        assert keys().check("uid-a", notes(mark, **{labels.LAUNCH_REQUEST: "{}"})) == Checked(), mark


def test_fields_do_not_run_into_each_other() -> None:
    """The same text, divided otherwise between UID and group, has another mark."""
    mark = keys().mark(MarkedLaunch("ab", "c", "{}"))
    rows = {labels.LAUNCH_GROUP: "bc", labels.LAUNCH_REQUEST: "{}", labels.LAUNCH_MARK: mark}
    assert keys().check("a", rows) == Checked()


def test_a_mark_by_an_earlier_key_counts_while_that_key_is_kept() -> None:
    mark = keys(OTHER).mark(LAUNCH)
    assert keys(KEY, OTHER).check("uid-a", notes(mark)) == Checked(True, True, earlier_key=True)
    assert keys(KEY).check("uid-a", notes(mark)) == Checked()


def test_without_a_key_nothing_is_marked_and_nothing_is_covered() -> None:
    mark = keys().mark(LAUNCH)
    bare = LaunchKeys("c")
    assert bare.version == 0
    assert bare.check("uid-a", notes(mark)) == Checked()
    with pytest.raises(Unavailable):
        bare.mark(LAUNCH)


def test_the_key_of_the_process_gives_way_to_one_that_is_there() -> None:
    found = keys()
    found.use_own()
    assert found.current == KEY
    own = LaunchKeys.of_the_process("c")
    assert own.current == LaunchKeys.of_the_process("c").current != KEY


def test_the_version_changes_with_the_keys_only() -> None:
    found = keys()
    before = found.version
    found.use(KEY)
    assert found.version == before
    found.use(KEY, (OTHER,))
    assert found.version == before + 1


def test_the_mark_goes_into_the_patch_that_asks_for_it() -> None:
    ref, reason = Ref(NODE_CLAIM.name, "", "a"), Reason("Launch", "")
    patch = {"metadata": {"annotations": {"x": "y"}, "labels": {"l": "m"}}, "spec": {}}
    plain = PatchObject(reason=reason, verb="PrepareLaunch", ref=ref, patch=patch)
    assert keys().marked(plain) is plain
    deletion = DeleteObject(reason=reason, ref=ref, uid="uid-a")
    assert keys().marked(deletion) is deletion
    asked = PatchObject(reason=reason, verb="PrepareLaunch", ref=ref, patch=patch, marks=LAUNCH)
    done = keys().marked(asked)
    assert isinstance(done, PatchObject)
    annotations = {"x": "y", labels.LAUNCH_MARK: keys().mark(LAUNCH)}
    assert done.patch == {"metadata": {"annotations": annotations, "labels": {"l": "m"}}, "spec": {}}
    assert asked.patch == patch
