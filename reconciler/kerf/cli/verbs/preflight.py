"""`kerf preflight`: whether a cluster and an account have what Kerf needs, and the fixes. It changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext, Output
from kerf.cli.reports import escaping
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.aws.cloud import AwsCloud
    from kerf.kube.client import KubeClient
    from kerf.model.kinds import Kind
    from kerf.runtime.preflight.checks import Check
    from kerf.runtime.preflight.findings import Finding
    from kerf.runtime.preflight.run import World

_USAGE = """\
kerf preflight [--kubeconfig FILE] [--context NAME] [-n NAMESPACE] [--values FILE] [-o FORMAT] [settings]

Checks everything that Kerf needs of a cluster and an account, and names the fix of whatever is wrong: before Kerf is
installed, after that, and when something does not work. Nothing is changed: permissions in EC2 are checked by dry runs,
and the webhook by an object that is not created.

Where Kerf is installed its own settings count, so no flag is needed. Before installation --values names the values of
the chart, or flags name settings (--cluster-name is required); the first lines report the assumed settings.
Permissions in the cluster are those of the controller's ServiceAccount. Calls of AWS are made with your credentials.
To make them with the controller's, run it in its pod: kubectl exec -n NAMESPACE deploy/NAME -- kerf preflight.
A check that lacks a permission is "not checked", and names it: docs/reference/preflight.md.

  --kubeconfig FILE      the cluster; as kubectl would without it
  --context NAME         context of the kubeconfig
  -n, --namespace NAME   namespace of Kerf; without it any that has it, and kerf before installation
  --values FILE          values of Kerf's chart, as for helm; repeatable
  -o, --output FORMAT    text or json; text by default

Settings are those of `kerf run` (flags or variables); flags have precedence over the settings of an installed Kerf.
Exit codes: 0 nothing is wrong; 1 something is; 2 the command is wrong."""

_SIGNS: Final = {"ok": "  ok    ", "doubtful": "  ?     ", "not checked": "  -     ", "wrong": "  WRONG "}
#: By result, the word of the summary.
_WORDS: Final = {"ok": "right", "wrong": "wrong", "not checked": "not checked", "doubtful": "doubtful"}


def preflight(
    context: typer.Context,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="namespace of Kerf")] = "",
    values: Annotated[list[str] | None, typer.Option("--values", help="values of Kerf's chart; repeatable")] = None,
    output: Output = "text",
) -> None:
    """Whether a cluster and an account have what Kerf needs, and the fix of whatever is wrong."""
    if "--help" in context.args or "-h" in context.args:
        say(_USAGE, prose=True)
        return
    from kerf.runtime.preflight.run import look
    from kerf.runtime.preflight.situation import Given
    from kerf.runtime.settings.settings import SettingsError, check_flags

    try:
        check_flags(context.args)
        if output not in ("text", "json"):
            raise SettingsError([f"--output: {output!r} is neither text nor json"])
        given = Given(context.args, os.environ, _merged(values or ()), namespace)
        results = look(_world(kubeconfig, kube_context), given, partial(_unreachable, kubeconfig, kube_context))
        found = list(results) if output == "json" else list(_printed(results))
    except SettingsError as error:
        say("\n".join(f"kerf preflight: {problem}" for problem in error.problems), err=True)
        raise typer.Exit(2) from error
    if output == "json":
        typer.echo(_as_json(found))
    else:
        say(f"\n{_summary(found)}")
    if any(finding.how == "wrong" for _, finding in found):
        raise typer.Exit(1)


def _printed(results: Iterable[tuple[Check, Finding]]) -> Iterator[tuple[Check, Finding]]:
    """Each as it is found, below the heading of its phase."""
    phase = ""
    for check, one in results:
        if check.phase != phase:
            say(f"{check.phase.capitalize()}:")
            phase = check.phase
        say(_SIGNS[one.how] + _visible(one.what + (f": {one.seen}" if one.seen else "")))
        if one.fix and one.how != "ok":
            say(f"          {_visible(one.fix)}")
        yield check, one


def _visible(text: str) -> str:
    """The text on one line and without control characters: messages of kubelets, registries and AWS may hold both."""
    return escaping.visible(" ".join(text.split()))


def _counts(found: Iterable[tuple[Check, Finding]]) -> Mapping[str, int]:
    hows = [one.how for _, one in found]
    return {word: hows.count(how) for how, word in _WORDS.items()}


def _summary(found: Iterable[tuple[Check, Finding]]) -> str:
    return ", ".join(f"{count} {word}" for word, count in _counts(found).items())


def _as_json(found: Iterable[tuple[Check, Finding]]) -> str:
    """One object: a row for each finding, and how many there are of each result."""
    found = list(found)
    rows = [
        {
            "check": check.name,
            "phase": check.phase,
            "needs": check.needs,
            "what": one.what,
            "result": one.how,
            "seen": one.seen,
            "fix": "" if one.how == "ok" else one.fix,
        }
        for check, one in found
    ]
    counts = {word.replace(" ", "_"): count for word, count in _counts(found).items()}
    return json.dumps({"version": 1, "findings": rows, **counts}, indent=2)


# --- ways to the cluster and to AWS -------------------------------------------------------------------------------
def _world(kubeconfig: str, kube_context: str) -> World:
    from kerf.runtime.observe.answer_times import AnswerTimes
    from kerf.runtime.preflight.run import World
    from kerf.runtime.process import connecting
    from kerf.runtime.process.clock import SystemClock
    from kerf.runtime.settings.options import Options

    def poisoned(kind: Kind, problem: str) -> None:
        """Reported with each object."""

    def kube() -> KubeClient:
        where = connecting.Where(kubeconfig, kube_context)
        return connecting.client(Options(), where, poisoned, watched=times, patience=connecting.PATIENCE)

    def cloud(options: Options, client: KubeClient) -> AwsCloud:
        return connecting.cloud(options, client, clock)

    clock, times = SystemClock(), AnswerTimes()
    return World(kube, connecting.clients, cloud, clock.now, times.slow)


def _unreachable(kubeconfig: str, kube_context: str, error: str) -> str:
    """The fix for an API server that does not answer, by its error."""
    from kerf.runtime.process import connecting

    file = kubeconfig or os.environ.get("KUBECONFIG", "")
    named = " and ".join(
        text
        for text in (f"kubeconfig {file}" if file else "", f"context {kube_context}" if kube_context else "")
        if text
    )
    found = connecting.remedy(error, named or "~/.kube/config")
    elsewhere = error.startswith("kubeconfig") or "address" in found
    return "name the cluster: --kubeconfig, --context" if elsewhere and not named else found


def _merged(files: Iterable[str]) -> Mapping[str, Any]:
    """The values of all files, the last first. Raises SettingsError for a file that is no map of values."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from kerf.cli.gathering.sources import Source
    from kerf.runtime.preflight import values
    from kerf.runtime.settings.settings import SettingsError

    found: dict[str, Any] = {}
    for name in files:
        try:
            document = YAML(typ="safe", pure=True).load(Source(name).read())
        except (OSError, YAMLError) as error:
            raise SettingsError([f"--values {name}: {' '.join(str(error).split())}"]) from error
        if not isinstance(document, Mapping | None):
            raise SettingsError([f"--values {name}: must be a map of values, as values.yaml of the chart is"])
        found = values.merged(found, document or {})
    return found
