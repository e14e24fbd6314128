"""Files of snapshots: what is written is what is read, and what cannot be read says why."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import pytest

from kerf.cli.answering import saved
from kerf.decide import decide
from kerf.model.cluster import FACTS, FIELDS
from kerf.model.kinds import Ref
from kerf.model.plan import CreateNodeClaim, DeleteMessage, EvictPod, PatchObject, Reason
from kerf.model.snapshot import Snapshot
from kerf.model.writes import with_metadata
from kerf.snapshots import actions, files
from kerf.snapshots.lines import VERSION
from kerf.snapshots.reading import Unreadable, read
from kerf.snapshots.sanitizing import Sanitizer
from kerf.snapshots.writing import lines

from .worlds import busy

OLD = Path(__file__).parent / "versions"
KEY = b"key"


def written() -> list[bytes]:
    return list(lines(busy(), KEY))


# --- there and back ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name in FACTS if name not in ("interruptions", "catalogues")])
def test_every_fact_comes_back(name: str) -> None:
    before, after = getattr(busy().snapshot, name), getattr(read(written()).snapshot, name)
    assert (dict(before) == dict(after)) if name == "instances" else (before == after)


@pytest.mark.parametrize("name", FIELDS.values())
def test_every_object_comes_back(name: str) -> None:
    before, after = getattr(busy().snapshot, name), getattr(read(written()).snapshot, name)
    assert before.keys() == after.keys()


def test_instance_types_are_computed_from_the_regions_facts() -> None:
    found = read(written())
    assert found.snapshot.catalogues == busy().snapshot.catalogues
    assert found.region == busy().region


def test_the_same_is_decided() -> None:
    found = read(written())
    cleaner = Sanitizer(KEY, busy().snapshot)
    before, after = decide(busy().snapshot), decide(found.snapshot)
    assert before.actions, "nothing is decided, so that nothing is compared"
    assert [actions.to_plain(one, cleaner) for one in before.actions] == [
        actions.to_plain(one, cleaner) for one in after.actions
    ]
    assert replace(before, actions=()) == replace(after, actions=())


def test_the_same_snapshot_gives_the_same_bytes() -> None:
    assert files.compressed(written()) == files.compressed(written())


def test_actions_under_way_come_back() -> None:
    claim = with_metadata(next(iter(busy().snapshot.node_claims.values())), annotations={})
    why = Reason("Because", "of this")
    found = (
        CreateNodeClaim(reason=why, claim=claim),
        EvictPod(reason=why, ref=Ref("Pod", "default", "a"), uid="1", node_name="n"),
        PatchObject(reason=why, verb="Taint", ref=Ref("Node", "", "n"), patch={"spec": {"taints": [{"key": "a"}]}}),
    )
    told = lines(replace(busy(), snapshot=replace(busy().snapshot, under_way=found)), KEY)
    assert read(told).snapshot.under_way == found


def test_an_action_of_another_version_is_unreadable() -> None:
    with pytest.raises(ValueError, match="there is no action 'Explode'"):
        actions.from_plain({"action": "Explode"})


def test_a_message_that_is_deleted_has_neither_body_nor_receipt() -> None:
    message = busy().snapshot.interruptions[0].message
    assert message.body
    assert message.receipt
    found = actions.to_plain(DeleteMessage(reason=Reason("a"), message=message), Sanitizer(KEY, busy().snapshot))
    assert (found["message"]["id"], found["message"]["body"], found["message"]["receipt"]) == (message.id, "", "")


# --- bytes ------------------------------------------------------------------------------------------------------
def test_a_file_may_be_compressed_or_not() -> None:
    plain = b"".join(written())
    packed = files.compressed(written())
    assert gzip.decompress(packed) == plain
    assert list(files.lines(packed)) == list(files.lines(plain)) == plain.splitlines()


def test_who_writes_gives_way_before_each_line() -> None:
    ways: list[int] = []
    files.compressed(written(), lambda: ways.append(1))
    assert len(ways) == len(written())


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_file_that_was_cut_is_unreadable(share: float) -> None:
    for data in (files.compressed(written()), b"".join(written())):
        with pytest.raises(Unreadable, match=r"missing|cut|line \d+"):
            read(files.lines(data[: int(len(data) * share)]))


def test_a_file_without_a_line_is_unreadable() -> None:
    found = written()
    with pytest.raises(
        Unreadable, match=rf"line {len(found) - 1}: the record of the end counts {len(found) - 1} lines"
    ):
        read([*found[:3], *found[4:]])


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST_LINE", 1000)
    with pytest.raises(Unreadable, match="a line has more than"):
        list(files.lines(b"x" * 300_000))


def test_a_bomb_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST", 1_000_000)
    with pytest.raises(Unreadable, match="it has more than"):
        list(files.lines(gzip.compress(b"\n" * 2_000_000)))


def test_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    """A device without an end is given up, too."""
    (tmp_path / "a").write_bytes(files.compressed(written()))
    assert list(files.lines(saved.pieces(tmp_path / "a"))) == list(files.lines(b"".join(written())))
    with pytest.raises(Unreadable, match="a line has more than 64 MiB"):
        list(files.lines(saved.pieces(Path("/dev/zero"))))


def test_compressed_bytes_that_stand_for_nothing_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST", 1_000_000)
    packer = files.packer()
    empty = (packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(10**6))
    with pytest.raises(Unreadable, match="it has more than"):
        list(files.lines(empty))


def test_joined_files_are_unreadable() -> None:
    packed = files.compressed(written())
    for apart in ([packed + packed], [packed, packed]):
        with pytest.raises(Unreadable, match="it has data after its end"):
            list(files.lines(apart))


@pytest.mark.parametrize("size", [256 * 1024, 4096, 64])
def test_lines_before_a_damaged_byte_are_read(size: int) -> None:
    """A small file is one piece; an invalid block type (the bits 11) ends its decompression."""
    packer, sound = files.packer(), [b'{"line":%d}' % number for number in range(2000)]
    head = packer.compress(b"".join(line + b"\n" for line in sound)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = head + b"\x06" + b"\0" * 5000
    told = list[bool]()
    read = files.lines((data[at : at + size] for at in range(0, len(data), size)), lambda: told.append(True))
    assert list(islice(read, len(sound))) == sound
    with pytest.raises(Unreadable, match=rf"it is damaged at byte {len(head):,} or before: "):
        next(read)
    assert not told


def test_few_of_the_unknown_names_are_kept() -> None:
    many = [b'{"line":"fact","name":"%s"}' % (b"%d" % number * 200) for number in range(1000)]
    first, *rest = written()
    found = read([first, *rest[:-1], *many, b'{"line":"end","lines":%d}' % (len(rest) + 1000)]).unknown
    assert sum(map(len, found)) <= 10_000


# --- other versions ---------------------------------------------------------------------------------------------
def _header(change: Callable[[dict[str, object]], object]) -> list[bytes]:
    first, *rest = written()
    header = json.loads(first)
    change(header)
    return [json.dumps(header).encode(), *rest]


def _saving(share: str) -> bytes:
    thresholds = {"minimum_saving": {"share": share, "micro_usd_per_hour": 0}}
    fact = {"line": "fact", "name": "settings", "value": {"cluster_name": "a", "thresholds": thresholds}}
    return json.dumps(fact).encode()


def _types(**numbers: float) -> list[bytes]:
    """A file whose instance types have these numbers."""
    found = [json.loads(line) for line in written()]
    region = next(line["region"] for line in found if line["line"] == "region")
    region["types"] = {name: {**one, **numbers} for name, one in region["types"].items()}
    return [json.dumps(line).encode() for line in found]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "it is empty"),
        ([b"hello"], "line 1: it is no line of a snapshot"),
        ([b"[]"], "line 1: it is no line of a snapshot"),
        ([b'{"line":"end","lines":0}'], "line 1: a snapshot begins with its header"),
        (_header(lambda h: h.update(format="other")), "line 1: the format is 'other', not kerf.sh/snapshot"),
        (_header(lambda h: h.update(version=VERSION + 1)), rf"line 1: it has version {VERSION + 1} of the format"),
        (_header(lambda h: h.update(at="2026-01-01T00:00:00")), "its time has no zone"),
        ([*written(), written()[0]], r"line \d+: the file continues after its end; save the snapshot again"),
        ([written()[0], *written()], "line 2: a second header"),
        ([written()[0], b'{"line":"fact","name":"batch","value":7}'], "line 2: Expected `object"),
        ([written()[0], b'{"line":"magic"}'], "line 2: Invalid value 'magic'"),
        ([written()[0], b'{"line":"end","lines":1}'], "it has no settings"),
        ([written()[0], _saving("1/0")], "line 2: '1/0' is no fraction"),
        ([written()[0], _saving("1e999999999")], "line 2: '1e999999999' is no fraction"),
        ([written()[0], b'{"line":"fact","name":"kept","value":{"$pairs":7}}'], "line 2: "),
        ([written()[0], b'{"line":"fact","name":"under_way","value":[7]}'], "line 2: "),
        (_types(vcpus=-1), "the instance types of EC2NodeClass default cannot be computed"),
        (_types(clock_speed_ghz=1e308), "the instance types of EC2NodeClass default cannot be computed"),
    ],
)
def test_what_is_no_snapshot_says_why(wrong: list[bytes], words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read(wrong)


def test_kinds_and_facts_of_a_later_version_are_named() -> None:
    first, *rest = written()
    own = [
        b'{"line":"objects","kind":"Comet","items":[{}]}',
        b'{"line":"fact","name":"moons","value":2}',
        b'{"line":"end","lines":%d}' % (len(rest) + 2),
    ]
    assert read([first, *rest[:-1], *own]).unknown == ("Comet", "moons")


@pytest.mark.parametrize("file", sorted(OLD.glob("*.snapshot")), ids=lambda file: file.stem)
def test_files_of_earlier_versions_are_read(file: Path) -> None:
    found = read(files.lines(file.read_bytes()))
    assert not found.unknown
    assert len(found.snapshot.pods) == 44
    assert len(found.snapshot.node_claims) == len(found.snapshot.instances) == 10
    assert {name: len(types) for name, types in found.snapshot.catalogues.items()} == {"default": 123}
    assert decide(found.snapshot).actions


def test_every_field_of_the_snapshot_is_in_a_line_or_follows_from_others() -> None:
    derived = {"pool_specs", "state_nodes", "pdb_budgets", "pdb_selectors", "overlaid", "overlay_faults", "journal"}
    derived |= {f.name for f in fields(Snapshot) if "_by_" in f.name}
    derived |= {"catalogues"}
    assert {f.name for f in fields(Snapshot)} == derived | {*FIELDS.values()} | {*FACTS}
