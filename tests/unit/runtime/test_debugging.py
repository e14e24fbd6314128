"""The debug port over real sockets, with a live controller in the sandbox behind it; and what `kerf` makes of it."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kerf.runtime.process import debugging
from kerf.runtime.process.profiling import Busy, Profiler
from kerf.snapshots import files
from kerf.snapshots.reading import read
from tests.ipv6 import LOOPBACK
from tests.unit.runtime.nights import Night
from tests.worlds import node_class


@pytest.fixture
def night() -> Iterator[Night]:
    with Night() as made:
        yield made


# --- a snapshot -------------------------------------------------------------------------------------------------
def test_the_port_has_what_the_controller_sees_as_a_file(night: Night, tmp_path: Path) -> None:
    night.world.apply(node_class())
    night.world.run(night.loop, timedelta(minutes=1))
    file = tmp_path / "now.snapshot"
    code, said = night.kerf("snapshot", "-o", str(file), "--controller")
    assert (code, stat.S_IMODE(file.stat().st_mode)) == (0, 0o600), said
    found = read(files.lines(file.read_bytes()))
    assert found.snapshot.class_facts["default"].subnets
    assert found.region is not None
    assert found.snapshot.fresh_at == night.loop.state.snapshot(night.world.clock.now()).fresh_at


def test_names_of_a_controllers_snapshot_can_be_replaced(night: Night, tmp_path: Path) -> None:
    night.world.apply(node_class(name="payments"))
    night.world.run(night.loop, timedelta(minutes=1))
    file = tmp_path / "now.snapshot"
    assert night.kerf("snapshot", "-o", str(file), "--controller", "--hash-names")[0] == 0
    assert not any(b"payments" in line for line in files.lines(file.read_bytes()))
    assert read(files.lines(file.read_bytes())).names == "pseudonyms"


# --- the log level ----------------------------------------------------------------------------------------------
def test_the_log_level_is_changed_for_a_time_and_then_as_it_was_set(night: Night) -> None:
    assert night.kerf("debug", "log-level", "debug", "--for", "200ms")[0] == 0
    assert night.threshold.level == "debug"
    assert night.kerf("debug", "log-level") == (0, "debug\n")
    until = time.monotonic() + 10
    while night.threshold.level != "info" and time.monotonic() < until:
        time.sleep(0.02)
    messages = [json.loads(line)["message"] for line in night.stream.getvalue().splitlines()]
    assert messages == ["log level changed", "log level is as it was set"]


@pytest.mark.parametrize(
    "arguments", [("warn",), ("debug", "--for", "25h"), ("debug", "--for", "0s"), ("debug", "--for", "soon")]
)
def test_a_level_or_a_time_that_makes_no_sense_changes_nothing(arguments: tuple[str, ...], night: Night) -> None:
    code, told = night.kerf("debug", "log-level", *arguments)
    assert code == 2
    assert "must be" in told
    assert night.threshold.level == "info"


def test_a_second_change_counts_and_the_first_one_ends_nothing(night: Night) -> None:
    night.log_level.change("debug", timedelta(milliseconds=50))
    night.log_level.change("error", timedelta(hours=1))
    time.sleep(0.2)
    assert night.threshold.level == "error"
    night.log_level.change("info")
    assert night.threshold.level == "info"


# --- who may ask ------------------------------------------------------------------------------------------------
def test_a_page_of_another_origin_gets_no_answer_and_changes_nothing(night: Night) -> None:
    path = "/debug/log-level?level=debug"
    assert night.ask("PUT", path, Host="rebound.example.com:8082")[0] == 403
    assert night.ask("GET", "/status", Host="rebound.example.com")[0] == 403
    assert night.ask("POST", path)[0] == 501
    assert night.threshold.level == "info"
    assert night.ask("PUT", path, Host="localhost:8082")[0] == 200


def test_it_listens_on_the_loopback_addresses_alone(night: Night) -> None:
    assert night.server.addresses == LOOPBACK


# --- threads and profiles ---------------------------------------------------------------------------------------
def test_every_thread_is_shown_with_its_stack(night: Night) -> None:
    code, told = night.kerf("debug", "threads")
    assert code == 0
    assert "thread MainThread" in told
    assert "test_every_thread_is_shown_with_its_stack" in told


def test_a_profile_says_where_the_time_went(night: Night) -> None:
    busy, stop = 0, threading.Event()

    def spin_for_the_profile() -> None:
        nonlocal busy
        while not stop.is_set():
            busy += 1

    thread = threading.Thread(target=spin_for_the_profile, name="spinner", daemon=True)
    thread.start()
    code, told = night.kerf("debug", "profile", "--seconds", "0.5")
    stop.set()
    thread.join()
    assert code == 0
    stack, _, micros = told.splitlines()[0].rpartition(" ")
    assert stack.startswith("spinner;")
    assert "spin_for_the_profile" in stack
    assert int(micros) > 0  # how much it got is the machine's affair


def test_one_profile_at_a_time() -> None:
    refused: list[Busy] = []

    def another_asks(seconds: float) -> None:
        try:
            profiler.profile(1)
        except Busy as error:
            refused.append(error)

    profiler = Profiler(pause=another_asks)
    profiler.profile(0.001)
    assert refused
    profiler.profile(0.001)


@pytest.mark.parametrize("seconds", ["0", "-1", "1000", "nan"])
def test_a_profile_of_no_time_or_of_ages_is_refused(seconds: str, night: Night) -> None:
    assert night.ask("GET", f"/debug/profile?seconds={seconds}")[0] == 400


def test_the_port_of_the_metrics_has_profiles_but_neither_status_nor_log_level(night: Night) -> None:
    asked = debugging.of_profiling(night.loop.telemetry.turns.as_json)
    assert {path for method, path in asked if method == "GET"} == {"/debug/threads", "/debug/profile", "/debug/turns"}
    assert len(asked) == 3
