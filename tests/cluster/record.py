"""What Kerf asks of a control plane, written down by its API server, and what tests say about it.

Every control plane has such a record: an audit log of the ServiceAccounts of two namespaces, who asked for what and
whether that was allowed. Kerf runs in the one; in the other are accounts that play people with commands of ours. Where
KERF_RIGHTS_RECORD names a folder, records are put there and stay; else they go with their plane. A test that takes
rights away, or asks for what nobody gave, leaves a mark beside the record, and so does an API server that is started
again. `tests.cluster.rights` compares all of it with the chart's roles.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "KERF_RIGHTS_RECORD"
#: Where the controller and the webhook run, and where those accounts are that play people.
KERF, PEOPLE = "kerf", "people"
AUDIT, MARKS = ".audit.jsonl", ".marks.jsonl"
#: Source: Kubernetes, "Auditing", audit policy; the group of all ServiceAccounts of a namespace.
POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{namespace}" for namespace in (KERF, PEOPLE)]},
        {"level": "None"},
    ],
}

#: Rules as a Role has them.
Rules = Sequence[Mapping[str, Any]]


def begin(folder: Path, *, anew: bool = True) -> None:
    """The planes of this process and its children write their records to this folder, which is emptied if `anew`."""
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = str(folder.resolve())


def current_test() -> str:
    """The test that is running, without its parameters: `tests/cluster/test_x.py::test_y`; empty outside of tests."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("[")[0]


def path_for(plane: Path) -> Path:
    """Where the API server of a plane, whose temporary folder this is, writes its audit log."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return plane / f"record{AUDIT}"
    Path(folder).mkdir(parents=True, exist_ok=True)
    first = current_test().partition("::")[0].rpartition("/")[2].removesuffix(".py") or "other"
    return Path(folder).resolve() / f"{first}.{plane.name.removeprefix('kerf-cluster-')}{AUDIT}"


@dataclass(frozen=True, slots=True)
class Mark:
    """From when until when which rights were missing, and to which test that happened.

    None of them in particular: the API server was starting, which knows no Roles until it has read them; or the Roles
    had gone with their release, and the controller was about to end.
    """

    test: str
    since: datetime
    until: datetime
    missing: Rules | None


def mark(audit: Path, since: datetime, missing: Rules | None) -> None:
    """Note that until now, and since then, the running test wanted these to be missing (None: see `Mark`)."""
    row = {"test": current_test(), "since": since.isoformat(), "until": now().isoformat(), "missing": missing}
    with _marks(audit).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def marks(audit: Path) -> list[Mark]:
    """What tests noted beside a record."""
    path = _marks(audit)
    rows = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [_read(json.loads(row)) for row in rows]


def events(audit: Path) -> Iterator[dict[str, Any]]:
    """The lines of a record; the last one may be half written."""
    with audit.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def said(log: Path, message: str) -> Iterator[dict[str, Any]]:
    """The lines of a controller's log with this message."""
    return (row for row in events(log) if row["message"] == message)


def records(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob(f"*{AUDIT}"))


def now() -> datetime:
    return datetime.now(UTC)


def _read(row: Mapping[str, Any]) -> Mark:
    since, until = (datetime.fromisoformat(row[key]) for key in ("since", "until"))
    return Mark(row["test"], since, until, row["missing"])


def _marks(audit: Path) -> Path:
    return audit.with_name(audit.name.removesuffix(AUDIT) + MARKS)
