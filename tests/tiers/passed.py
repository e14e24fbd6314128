"""A plugin of pytest for runs of hours: tests that have passed on the same sources are left out.

It is for tests that do not depend on each other. `KERF_PASSED` names the file with the IDs of those that have passed;
the first line is the state of the sources.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "KERF_PASSED"


def begin(file: Path, state: str) -> None:
    """This process and its children go on with this file if it is of the same state of the sources, else anew."""
    known = file.read_text(encoding="utf-8").partition("\n")[0] if file.exists() else None
    if not state or known != state:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{state}\n", encoding="utf-8")
    os.environ[VARIABLE] = str(file.resolve())


def _file() -> Path | None:
    name = os.environ.get(VARIABLE)
    return Path(name) if name else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (file := _file()) is None:
        return
    passed = {*file.read_text(encoding="utf-8").splitlines()[1:]}
    done = [item for item in items if item.nodeid in passed]
    if done:
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item.nodeid not in passed]


def pytest_configure(config: pytest.Config) -> None:
    if (file := _file()) is not None and not hasattr(config, "workerinput"):  # a worker reports to who started it
        config.pluginmanager.register(_Writer(file))


class _Writer:
    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self._file.open("a", encoding="utf-8") as out:
                out.write(f"{report.nodeid}\n")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """That all tests have passed before is a success."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and _file() is not None:
        session.exitstatus = pytest.ExitCode.OK
