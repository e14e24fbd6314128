"""Finding the control plane's programs and watching over them, as far as that needs no control plane."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import processes
from .binaries import FOLDER_VARIABLE, PACKAGES, ControlPlaneUnavailable, find_binaries
from .flux_programs import FluxUnavailable, find_flux
from .processes import Component, ComponentFailed, ProcessGroup, wait_until
from .prometheus_programs import PrometheusUnavailable, find_prometheus


@pytest.fixture
def group(tmp_path: Path) -> Iterator[ProcessGroup]:
    """A process group whose temporary folder is `tmp_path/"folder"`."""
    folder = tmp_path / "folder"
    folder.mkdir()
    group = ProcessGroup(folder)
    yield group
    group.end()


def shell(tmp_path: Path, script: str, ready: bool = True) -> Component:
    return Component("sample", ["/bin/sh", "-c", script], tmp_path / "sample.log", {}, lambda: ready)


def test_a_chosen_folder_must_be_complete(tmp_path: Path) -> None:
    for name in set(PACKAGES) - {"etcd", "kwok"}:
        (tmp_path / name).touch(mode=0o755)
    environment = {FOLDER_VARIABLE: str(tmp_path)}
    with pytest.raises(ControlPlaneUnavailable, match="has no etcd, kwok"):
        find_binaries(environment=environment)
    for name in ("etcd", "kwok"):
        (tmp_path / name).touch(mode=0o755)
    assert find_binaries(environment=environment) == tmp_path


@pytest.mark.parametrize(
    ("find", "missing"),
    [(find_flux, FluxUnavailable), (find_prometheus, PrometheusUnavailable)],
    ids=["Flux", "Prometheus"],
)
def test_what_cannot_be_built_says_why_and_leaves_nothing(
    find: Callable[..., Path], missing: type[ControlPlaneUnavailable], tmp_path: Path
) -> None:
    told: list[str] = []
    with pytest.raises(missing, match="no Go toolchain"):
        find(told.append, {}, tmp_path)
    broken = tmp_path / "bin" / "go"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no such module >&2; exit 1\n")
    broken.chmod(0o755)
    with pytest.raises(missing, match="no such module"):
        find(told.append, {"PATH": str(broken.parent)}, tmp_path / "cache")
    assert len(told) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_program_that_dies_tells_why(tmp_path: Path, group: ProcessGroup) -> None:
    component = shell(tmp_path, "echo the disk is on fire; exit 3", ready=False)
    component.start(group.id)
    with pytest.raises(ComponentFailed, match=r"(?s)sample ended with exit code 3.*the disk is on fire"):
        component.wait_ready()


def test_a_program_that_ignores_the_request_is_killed(tmp_path: Path, group: ProcessGroup) -> None:
    component = shell(tmp_path, "trap '' TERM; while :; do sleep 1; done")
    component.start(group.id)
    component.wait_ready()
    component.stop()
    assert component.pid is None


def test_ending_the_group_leaves_neither_process_nor_folder(tmp_path: Path, group: ProcessGroup) -> None:
    component = shell(tmp_path, "sleep 600")
    component.start(group.id)
    group.end()
    component.forget()
    assert component.pid is None
    assert not (tmp_path / "folder").exists()


def test_nothing_outlives_a_test_run_that_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    script = (
        "import os, signal, sys; from pathlib import Path; from tests.cluster.processes import *\n"
        f"group = ProcessGroup(Path({str(folder)!r}))\n"
        f"sleeper = Component('sleeper', ['/bin/sleep', '600'], Path({str(tmp_path / 'log')!r}), {{}}, lambda: True)\n"
        "sleeper.start(group.id); print(sleeper.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False, timeout=30
    )
    sleeper = Path("/proc") / ran.stdout.strip()
    assert ran.stdout.strip()
    wait_until(lambda: not folder.exists() and not _is_alive(sleeper), lambda: "something is left", seconds=10)


def test_no_port_is_given_to_two_runs_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PORTS", range(30_000, 30_050))
    ours = processes.free_ports(30)
    script = (
        "from tests.cluster import processes\n"
        "processes.PORTS = range(30_000, 30_050); print(*processes.free_ports(50))\n"
    )
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True, timeout=30
    )
    theirs = {int(port) for port in ran.stdout.split()}
    assert len(ours) == 30
    assert 0 < len(theirs) <= 20
    assert theirs.isdisjoint(ours)


def _is_alive(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
