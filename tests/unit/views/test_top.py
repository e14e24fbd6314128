"""`kerf top`: keys, drawing, hostile names, speed; and the program itself in a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import threading
import time
from dataclasses import replace
from io import StringIO
from typing import Final

import pytest
from rich.console import Console

from benchmarks.plans import snapshot
from kerf.cli.top.drawing import draw
from kerf.cli.top.keyboard import Keys
from kerf.cli.top.state import COST, NEXT, NODES, PENDING, State
from kerf.model.snapshot import Snapshot
from kerf.views.board import Board, board
from tests.sources import ROOT, python_path
from tests.unit.views import worlds

SNAPSHOT: Final = "tests/unit/snapshots/versions/1.snapshot"


def shown(state: State, height: int = 24, width: int = 160) -> str:
    """The text of a screen."""
    console = Console(file=StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(draw(state, (width, height), "a test", ""))
    return captured.get()


def state_of(found: Snapshot) -> State:
    """The first screen."""
    made = State(board(found))
    made.show(made.board)
    return made


def pressed(state: State, *keys: str) -> State:
    """The state after these keys."""
    assert all(state.press(key) for key in keys)
    return state


def test_the_first_screen_has_the_nodes_and_the_totals() -> None:
    text = shown(state_of(worlds.cluster()))
    assert "2 nodes  4 pods  0 pending" in text
    assert "node-a" in text
    assert "PodDisruptionBudget shop/keep allows no disruption now" in text


def test_keys_change_the_view_the_order_and_the_filter() -> None:
    state = state_of(worlds.cluster(worlds.waiting("huge", "900", of="huge")))
    assert pressed(state, "s").order == "price"
    assert pressed(state, "2").view == PENDING
    assert "shop/huge" in shown(state)
    assert pressed(state, "3").view == NEXT
    assert pressed(state, "4").view == COST
    assert [row.name for row in pressed(state, "/", *"etlx", "backspace", "enter").rows] == ["node-a"]
    assert (state.view, state.text, state.typing) == (NODES, "etl", False)
    assert len(pressed(state, "escape").rows) == 2


def test_enter_explains_the_selected_row_and_q_goes_back() -> None:
    state = pressed(state_of(worlds.cluster()), "down", "enter")
    assert state.detail
    assert state.detail.text.startswith("node node-b")
    assert "node node-b" in shown(state)
    assert pressed(state, "q").detail is None
    assert not state.press("q")


def test_the_selection_stays_in_the_list() -> None:
    state = state_of(worlds.cluster())
    assert pressed(state, "up", "page up").selected == 0
    assert pressed(state, "page down", "down").selected == 1


def test_p_lists_the_pods_of_a_node_with_their_requests() -> None:
    text = shown(pressed(state_of(worlds.cluster()), "p"))
    assert "node node-a: 3 pods" in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "shop web-1 0.5 0.0 GiB Deployment web" in rows
    assert pressed(state_of(worlds.cluster()), "4", "p").detail is None


def test_a_long_answer_is_wrapped_and_scrolled_to_its_last_word() -> None:
    state = pressed(state_of(worlds.cluster()), "enter")
    assert state.detail
    words = state.detail.text.split()
    seen = list[str]()
    for _ in range(200):
        text = shown(state, height=8, width=44)
        assert len(text.splitlines()) <= 8
        seen += text.split("\n")[2:5]
        before = state.detail.first
        pressed(state, "down")
        shown(state, height=8, width=44)
        if state.detail.first == before:
            break
    assert {*words} <= {*" ".join(seen).split()}
    foot = shown(state, height=8, width=80)
    assert f"of {state.detail.lines}  Up Down" in foot
    assert state.selected == 0
    pressed(state, "home")
    shown(state, height=8, width=44)
    assert state.detail.first == 0


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
@pytest.mark.parametrize("view", "1234")
def test_every_width_shows_names_and_the_last_column(width: int, view: str) -> None:
    state = pressed(state_of(worlds.cluster(worlds.waiting("huge", "900", of="huge"))), view)
    lines = shown(state, width=width).splitlines()
    assert max(map(len, lines)) <= width
    head = lines[2].split("  ")
    assert head[0].split()[0] in ("NODE", "POD", "NAME")
    assert any(last in lines[2] for last in ("WHY IT STAYS", "REASON", "BUDGET AND BLOCK", "SHARE"))
    if view == "1" and width >= 80:
        assert "PRICE" in lines[2]
        assert "STATE" in lines[2]


def on_eks() -> State:
    """The first screen of a cluster with nodes as EC2 names them, which differ in their first part."""
    made = state_of(worlds.cluster(worlds.waiting("huge", "900", of="huge")))
    domain = ".us-west-2.compute.internal"
    nodes = tuple(replace(row, name=f"ip-10-0-0-{n}{domain}") for n, row in enumerate(made.board.nodes))
    ends = tuple(replace(row, node=f"ip-10-0-0-{n}{domain}") for n, row in enumerate(made.board.disruptions))
    made.show(replace(made.board, nodes=nodes, disruptions=ends))
    return made


@pytest.mark.parametrize(
    ("view", "heads", "cells"),
    [
        ("1", "NODE NODEPOOL TYPE STATE PRICE PODS CPU MEM", ("ip-10-0-0-0 ", "default", "$0.096/h")),
        ("2", "POD PODS REASON", ("shop/huge", "no existing node has")),
        ("3", "NODE NODEPOOL STATE REASON WHEN", ("ip-10-0-0-2 ", "Expired", "in 28d11h")),
        ("4", "NAME BY PODS PRICE SHARE", ("NodePool", "namespace", "team", "$0.017/h")),
    ],
)
def test_eighty_columns_have_what_each_view_is_for(view: str, heads: str, cells: tuple[str, ...]) -> None:
    text = shown(pressed(on_eks(), view), width=80)
    head = text.splitlines()[2].split()
    assert [one for one in heads.split() if one not in head] == []
    assert [one for one in cells if one not in text] == []
    assert max(map(len, text.splitlines())) <= 80


def test_names_of_nodes_that_would_be_alike_stay_whole() -> None:
    made = on_eks()
    names = ("a.west.example.com", "a.east.example.com")
    made.show(replace(made.board, nodes=tuple(map(lambda row, name: replace(row, name=name), made.board.nodes, names))))
    assert "a.east.example.com" in shown(made, width=80)


def test_costs_are_by_nodepool_namespace_and_team() -> None:
    rows = pressed(on_eks(), "4").rows
    assert list(dict.fromkeys(row.by for row in rows)) == ["NodePool", "namespace", "team"]
    assert [(row.name, row.percent) for row in rows if row.by == "NodePool"] == [("default", 100)]


def test_a_new_reading_keeps_the_selected_row() -> None:
    state = pressed(state_of(worlds.cluster()), "down")
    again = board(worlds.cluster())
    state.show(replace(again, nodes=(replace(again.nodes[0], name="node-0"), *again.nodes)))
    assert state.rows[state.selected].name == "node-b"


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"jjj", ["j", "j", "j"]),
        (b"/web\r", ["/", "w", "e", "b", "enter"]),
        (b"\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~", ["home", "end", "home", "end"]),
        (b"\x1b[1;5Cq", ["", "q"]),
        ("ä😀".encode(), ["ä", "😀"]),
        (b"\xff\xfeq", ["q"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[", ["escape", "["]),
        (b"\x00\x01q", ["", "", "q"]),
    ],
)
def test_no_key_of_a_fast_hand_is_lost(data: bytes, names: list[str]) -> None:
    reading, writing = os.pipe()
    os.write(writing, data)
    keys = Keys(reading)
    assert [keys.next(0) for _ in names] == names
    assert keys.next(0) == ""
    os.close(writing)
    with pytest.raises(EOFError):
        keys.next(0)
    os.close(reading)


def test_a_sequence_in_two_parts_is_one_key() -> None:
    reading, writing = os.pipe()
    keys = Keys(reading)
    os.write(writing, b"\x1b")
    later = threading.Timer(0.01, os.write, (writing, b"[A"))
    later.start()
    assert keys.next(1) == "up"
    later.join()
    os.close(writing)
    os.close(reading)


def test_hostile_names_move_no_cursor() -> None:
    state = state_of(worlds.hostile())
    for key in ("1", "2", "3", "4", "1", "p", "escape", "enter"):
        text = shown(pressed(state, key))
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
        assert len(text.splitlines()) <= 24


def test_five_thousand_nodes_are_drawn_within_200_ms() -> None:
    """In time of the processor; the views are there already: another thread reads a cluster."""
    small = board(snapshot(100).snapshot)
    rows = tuple(replace(row, name=f"{row.name}-{copy}") for copy in range(50) for row in small.nodes)
    large: Board = replace(small, nodes=rows)
    state = State(large)
    worst = max(_seconds(state, key) for key in ("s", "s", "down", "page down"))
    print(f"{len(state.rows)} nodes: {1000 * worst:.0f} ms")
    assert len(state.rows) == 5000
    assert worst <= 0.2


def _seconds(state: State, key: str) -> float:
    began = time.process_time()
    state.press(key)
    shown(state, height=50)
    return time.process_time() - began


@pytest.mark.parametrize("keys", [b"q", b"s2\r"])
def test_a_real_terminal(keys: bytes) -> None:
    reading, process = _started({"NO_COLOR": "1"} if keys == b"q" else {})
    written = _until(reading, b"10 nodes")
    os.write(reading, keys[:1])
    for byte in keys[1:]:
        time.sleep(0.3)
        os.write(reading, bytes([byte]))
    if keys != b"q":
        written += _until(reading, b"has no place")
        os.write(reading, b"q")
        time.sleep(0.3)
        os.write(reading, b"q")
    written += _until(reading, b"\x1b[?1049l")
    assert process.wait(30) == 0
    os.close(reading)
    assert b"\x1b[?1049h" in written
    assert b"Traceback" not in written


def test_a_real_terminal_of_eighty_columns_has_the_times_and_the_costs() -> None:
    reading, process = _started({"NO_COLOR": "1"})
    _until(reading, b"10 nodes")
    os.write(reading, b"3")
    assert b"\x1b[?1049l" not in _until(reading, b"WHEN")
    os.write(reading, b"4")
    assert b"NodePool" in _until(reading, b"SHARE") + _until(reading, b"quit")
    os.write(reading, b"q")
    _until(reading, b"\x1b[?1049l")
    assert process.wait(30) == 0
    os.close(reading)


def _started(more: dict[str, str]) -> tuple[int, subprocess.Popen[bytes]]:
    """The program in a terminal of 80 columns and 24 lines: its end of the terminal, and the process."""
    reading, own = pty.openpty()
    termios.tcsetwinsize(own, (24, 80))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "HOME": "/nonexistent", "TERM": "xterm", **more}
    command = [sys.executable, "-m", "kerf.cli.main", "top", "--snapshot", SNAPSHOT]
    process = subprocess.Popen(command, stdin=own, stdout=own, stderr=own, cwd=ROOT, env=env, start_new_session=True)
    os.close(own)
    return reading, process


def _until(reading: int, mark: bytes) -> bytes:
    """What the program writes, until it has written the mark. A terminal that ends fails the test."""
    written = b""
    while mark not in written:
        written += os.read(reading, 1 << 16)
    return written
