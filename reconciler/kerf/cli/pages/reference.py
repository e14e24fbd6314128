"""Pages of docs/reference that are rendered from the code: `python -m kerf.cli.pages.reference docs/reference`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from typer.main import get_command

from kerf.cli.app import app, verbs
from kerf.cli.pages.families import families_page
from kerf.cli.pages.labels import labels_page
from kerf.cli.pages.signals import events_page, metrics_page
from kerf.cli.pages.snapshots import snapshots_page
from kerf.runtime.preflight.checks import CHECKS
from kerf.runtime.preflight.slips import SLIPS
from kerf.runtime.settings.options import OWN, SAME, Options
from kerf.runtime.settings.settings import shown

_SETTINGS: Final = """\
# Settings

Rendered by `make manifests` from `reconciler/kerf/runtime/settings/options.py`. Each setting has a variable and a
flag of the same words (`METRICS_PORT`, `--metrics-port`). A flag beats a variable, a variable the default; an
empty variable has no effect. `kerf settings` prints each effective value with its source; a controller logs those that
were set (`effective settings`).

- Flags have one dash or two, `--x=value` or `--x value`; of a switch `--x`, `--x=true` or `--x=false`.
- Switches in variables are `1 t T TRUE true True` or `0 f F FALSE false False`; durations are Go's (`300ms`, `1h30m`).
- Values that cannot be read stop the process with exit code 2 and a line about each mistake. (Karpenter falls back to
  the default without a message when a variable cannot be read, and passes over unknown gates.)
- Nothing is read again while the process runs, but for the [log level](../operations.md#problems-and-fixes).

Of two variables that Karpenter's chart sets, `KUBERNETES_MIN_VERSION` is read neither by Karpenter nor by Kerf;
`INSTANCE_TYPES_FILE_PATH` belongs to Karpenter's build for KWOK alone, and there is no such thing here
(`kerf demo`, and the [catalogue](../validate.md), need no account).

| variable | default | what it is | compared with Karpenter |
|---|---|---|---|
"""

_GATES: Final = """
## Feature gates

`FEATURE_GATES` and `AWS_FEATURE_GATES` are `Name=true,Name=false`; what is not named keeps its default.

| gate | default | compared with Karpenter |
|---|---|---|
| CapacityBuffer, NodeOverlay, NodeRepair, SpotToSpotConsolidation, StaticCapacity | false | same |
| ReservedCapacity | true | same |
| NodeClassCEL | false | same; in `AWS_FEATURE_GATES` (in `FEATURE_GATES` it is accepted and has no effect) |
| Drift | | same: the name is accepted and has no effect |
"""

_CLI: Final = """\
# The command line

Rendered by `make manifests` from what each verb says with `--help`.

The package installs `kubectl-kerf`, too: with it on the PATH, `kubectl kerf VERB` is the same program. kubectl
completes its words by `kubectl_complete-kerf`; `kerf --install-completion` sets up the completion of `kerf`.

In a terminal, lines are as wide as it is; in a pipe each line is whole. With `NO_COLOR`, `TERM=dumb` or without `TERM`
there are no colours and no escape sequences.
"""
_PREFLIGHT: Final = """\
# Checks before and after installation

Rendered by `make manifests` from `reconciler/kerf/runtime/preflight/slips.py` and `checks.py`. `kerf preflight` checks
a cluster and an account, and changes nothing. The lines below are those that it prints; `…` stands for names and
figures.

- A check before installation needs no installed Kerf, and is made after it, too. A check after installation is about
  the Kerf that runs.
- Without the permission a check is `not checked: needs …`, never right. Permissions such as `list nodes` are those of
  Kubernetes; the others are actions of IAM. All of them are the caller's, and Kerf runs without them.
- Permissions of the controller are those of its ServiceAccount, which the API server is asked about
  (`create subjectaccessreviews.authorization.k8s.io`).
- The last line counts: `60 right, 1 wrong, 2 not checked, 0 doubtful`. What is doubtful does not prevent Kerf from
  working. The exit code is 1 when something is wrong. `-o json` prints the same as one object.

## Slips

| slip | phase | permissions | line | fix |
|---|---|---|---|---|
"""
_ALL_CHECKS: Final = """
## Checks

The name of a check is `check` in the JSON.

| check | phase | permissions |
|---|---|---|
"""
_WIDTH: Final = 100


def settings_page() -> str:
    rows = [
        f"| `{meta['env']}` | {_cell(shown(option.default))} | {meta['about']} | {_compared(meta['karpenter'])} |"
        for option in sorted(fields(Options), key=lambda one: str(one.metadata["env"]))
        for meta in [option.metadata]
    ]
    return _SETTINGS + "\n".join(rows) + "\n" + _GATES


def _cell(default: str) -> str:
    return f"`{default.replace(',', ', ')}`" if default else ""


def _compared(karpenter: str) -> str:
    return karpenter if karpenter in (SAME, OWN) else f"different: {karpenter}"


def cli_page() -> str:
    return _CLI + "".join(f"\n## kerf {verb}\n\n```text\n{told.strip()}\n```\n" for verb, told in _helps())


def _helps() -> Iterator[tuple[str, str]]:
    """Each verb, and what it says of itself on a screen of a fixed width."""
    group = get_command(app)
    with _screen({"COLUMNS": str(_WIDTH), "NO_COLOR": "1"}):
        for verb in sorted(verbs()):
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                group.main([verb, "--help"], prog_name="kerf")
            yield verb, "\n".join(line.rstrip() for line in said.getvalue().splitlines())


@contextlib.contextmanager
def _screen(wanted: Mapping[str, str]) -> Iterator[None]:
    """The environment as it is to be for a while."""
    before = dict(os.environ)
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def preflight_page() -> str:
    """Every slip that `kerf preflight` finds, and every check."""
    slips = [
        f"| {one.slip} | {one.check.phase} | {one.check.needs} | `{one.line}` | {_code(one.fix)} |" for one in SLIPS
    ]
    checks = [f"| `{one.name}` | {one.phase} | {one.needs} |" for one in CHECKS.values()]
    return _PREFLIGHT + "\n".join(slips) + "\n" + _ALL_CHECKS + "\n".join(checks) + "\n"


def _code(fix: str) -> str:
    """A command as one."""
    return f"`{fix}`" if fix.startswith("aws ") else fix


PAGES: Final = {
    "preflight.md": preflight_page,
    "settings.md": settings_page,
    "cli.md": cli_page,
    "metrics.md": metrics_page,
    "events.md": events_page,
    "labels.md": labels_page,
    "snapshots.md": snapshots_page,
    "instance-types.md": families_page,
}


def main(folder: str) -> None:
    for name, page in PAGES.items():
        (Path(folder) / name).write_text(page())


if __name__ == "__main__":
    main(sys.argv[1])
