"""What is read from the peer's answer, how it is called, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.karpenter import (
    SOURCES,
    PeerClaim,
    PeerUnavailable,
    build,
    fingerprint,
    read_outcome,
    workload_arguments,
)

SHORT = (
    b'{"seconds":5.06,"cpu_seconds":7.5,"parse_seconds":0.4,"nodes":200,"unplaced":3,"cost_usd_per_hour":322.6,'
    b'"peak_mib":78.1,"timed_out":false}'
)
LONG = SHORT[:-1] + (
    b',"claims":[{"nodePool":"default","types":["m5.large","c5.xlarge"],"pods":["a","b"],"zone":"us-east-1a",'
    b'"capacityType":"spot","price":0.05,"requirements":[]}],"existing":{"c":"node-1"},"errors":{"other/d":"no room"}}'
)


def test_a_short_answer_has_figures_only() -> None:
    found = read_outcome(SHORT)
    assert (found.seconds, found.cpu_seconds, found.nodes, found.unplaced, found.cost_usd_per_hour) == (
        5.06,
        7.5,
        200,
        3,
        322.6,
    )
    assert (found.claims, found.existing, found.errors) == ((), {}, {})


def test_a_long_answer_tells_who_goes_where() -> None:
    found = read_outcome(LONG)
    assert found.claims == (
        PeerClaim("default", ("m5.large", "c5.xlarge"), ("a", "b"), "us-east-1a", "spot", price_usd_per_hour=0.05),
    )
    assert found.existing == {"c": "node-1"}
    assert found.errors == {"other/d": "no room"}


@pytest.mark.parametrize("content", [b"", b"panic", b"{}", b"[]"], ids=["nothing", "words", "no figures", "a list"])
def test_what_is_no_answer_is_said_in_one_line(content: bytes) -> None:
    with pytest.raises(PeerUnavailable, match=r"^the answer of karpenter-peer is not as expected: .+$"):
        read_outcome(content)


def test_a_market_and_claims_are_asked_for_only_when_wanted() -> None:
    inputs = Path("w.json"), Path("c.json")
    plain = ["--workload", "w.json", "--catalogue", "c.json"]
    assert workload_arguments(*inputs, None) == plain
    assert workload_arguments(*inputs, "spot", claims=True) == [*plain, "--capacity-type", "spot", "--claims"]


def test_without_go_one_line_says_so_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailable, match=r"^no Go toolchain to build Karpenter's scheduler with$"):
        build(SOURCES, tmp_path / "peers" / "abc", None, print)
    assert not list(tmp_path.iterdir())


def test_a_build_that_fails_is_told_by_its_last_line(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho first >&2\necho last >&2\nexit 2\n")
    go.chmod(0o755)
    said: list[str] = []
    with pytest.raises(PeerUnavailable, match=r"^go build of Karpenter's scheduler failed: last$"):
        build(tmp_path, tmp_path / "peers" / "abc", str(go), said.append)
    assert len(said) == 1
    assert [path.name for path in (tmp_path / "peers").iterdir()] == [".lock"]


def test_other_sources_are_another_program(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("package main")
    before = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == before
    (tmp_path / "main.go").write_text("package other")
    assert fingerprint(tmp_path) != before
