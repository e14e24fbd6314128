"""`kerf status`: what is wrong now and needs a person; from the controller, or from the API server without one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext, Output, with_fix
from kerf.cli.operating import debug_port, status_page
from kerf.cli.operating.debug_port import Silent, Unreached
from kerf.cli.parser import meant
from kerf.cli.reports import escaping
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.operating.outside import Outside
    from kerf.kube.client import KubeClient

_USAGE: Final = f"""\
kerf status [--url URL] [-n NAMESPACE] [--kubeconfig FILE] [--context NAME] [-o FORMAT]

Problems first, each with its object, cause, beginning, number of attempts and fix: actions that fail or are forbidden;
pods without a place, by cause; NodePools, EC2NodeClasses and NodeClaims that are not Ready; guards that block changes;
sources that are out of date; an admission webhook that the API server does not reach, if the kubeconfig is of the same
cluster and the caller may create NodePools (a dry run). Then the leader, the loop, back-offs, offerings out of stock
and refusals by reason.

{debug_port.WHERE.format(command="kerf status")}

A replica that does not lead reports what the API server shows, and names the leader. The leader alone knows failing
actions, back-offs and refusals.

If no controller answers, or if --kubeconfig or --context names a cluster, the API server is asked instead: Kerf's
Deployment, pods and lease, events and conditions. What the caller may not read is reported as not checked.

  --url URL           the debug port; http://127.0.0.1:8082 by default, or DEBUG_PORT
  -n, --namespace NS  the namespace of Kerf; without it the command searches all namespaces
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig
  -o, --output FORMAT text or json; text by default

Exit codes: 0 no problem; 1 a problem needs a person; 2 neither a controller nor the API server answers, the caller may
read nothing, or the command is wrong."""
_NAMED: Final = "--kubeconfig or --context names the cluster, so no debug port was asked"
_OTHER_FORM: Final = """\
the answer of {} is not of the form of this command: another version of Kerf, or another program, listens there.
The command of the controller's own version: kubectl exec -n NAMESPACE deploy/NAME -- kerf status"""


def status(
    context: typer.Context,
    url: Annotated[str, typer.Option(help="the debug port")] = "",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="the namespace of Kerf")] = "",
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    output: Output = "text",
) -> None:
    """Problems that need a person, with cause and fix; the leader, the loop and what it leaves alone."""
    if "--help" in context.args or "-h" in context.args:
        say(_USAGE, prose=True)
        return
    try:
        if context.args or output not in ("text", "json"):
            raise Silent(_mistake(context.args, output))
        if not url and (kubeconfig or kube_context):  # the port may be that of another cluster's controller
            raise Unreached(_NAMED)
        problems = _asked(url, (kubeconfig, kube_context), as_json=output == "json")
    except Unreached as error:
        problems = _outside(error, namespace, (kubeconfig, kube_context), as_json=output == "json")
    except Silent as error:
        raise debug_port.fail("status", error) from error
    if problems:
        raise typer.Exit(1)


def _mistake(arguments: list[str], output: str) -> str:
    """What is wrong with a command line of unknown words, or of an unknown format."""
    if not arguments:
        return f"--output: {output!r} is neither text nor json"
    near = meant(arguments[0], ("--url", "--namespace", "--kubeconfig", "--context", "--output", "--help"))
    return f"{' '.join(arguments)!r} makes no sense here{near}; see kerf status --help"


def _asked(url: str, where: tuple[str, str], *, as_json: bool) -> int:
    """Print what the controller says, and how the webhook is; the number of problems. Raises Silent."""
    answer = debug_port.ask(url, "/status")
    try:
        found = json.loads(answer)
        found["problems"] = [*found["problems"], *_webhook(found["replica"], where)]
        count = len(found["problems"])
        text = json.dumps(found, indent=2) if as_json else status_page.page(_visible(found))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Silent(_OTHER_FORM.format(debug_port.base(url))) from error
    if as_json:
        typer.echo(text)
    else:
        say(text, end="")
    return count


def _webhook(replica: Mapping[str, Any], where: tuple[str, str]) -> list[Mapping[str, Any]]:
    """The problem of the webhook, if there is one and the caller may see it."""
    from kerf.cli.operating import webhook
    from kerf.judgement import troubles
    from kerf.ports import PortError

    try:
        found = webhook.trouble_beside(_kube(where), replica)
    except PortError:
        return []
    return [] if found is None else [troubles.plain(found)]


def _kube(where: tuple[str, str]) -> KubeClient:
    """The API server of the caller's kubeconfig, or of the pod. Raises PortError."""
    from kerf.runtime.process import connecting
    from kerf.runtime.settings import settings

    def poisoned(kind: Any, problem: str) -> None:
        say(f"kerf status: a {kind.name} cannot be read: {problem}", err=True)

    options = settings.parse([], {"CLUSTER_NAME": "any"})
    return connecting.client(options, connecting.Where(*where), poisoned, patience=connecting.PATIENCE)


def _visible(found: Any) -> Any:
    """The same with every text on one line and without control characters: errors of APIs may hold both."""
    if isinstance(found, dict):
        return {escaping.visible(key): _visible(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_visible(value) for value in found]
    return escaping.visible(" ".join(found.split())) if isinstance(found, str) else found


def _outside(silent: Unreached, namespace: str, where: tuple[str, str], *, as_json: bool) -> int:
    """Print what the API server shows; the number of problems."""
    from kerf.cli.operating import outside

    found, now = _look(silent, namespace, where)
    if as_json:
        typer.echo(json.dumps(outside.as_json(found, silent.short), indent=2))
    else:
        say(status_page.page_of_outside(_visible(outside.as_json(found, silent.short)), now), end="")
    if not found.checked:
        raise typer.Exit(2)
    return len(found.problems)


def _look(silent: Unreached, namespace: str, where: tuple[str, str]) -> tuple[Outside, str]:
    """What was found, and when. Exits with 2 when the API server does not answer either."""
    from kerf.cli.operating import outside
    from kerf.model.instants import rfc3339
    from kerf.ports import PortError
    from kerf.runtime.process.clock import SystemClock

    now = SystemClock().now()
    try:
        kube = _kube(where)
        now = outside.time(kube, now)
        return outside.look(kube, namespace, now), rfc3339(now)
    except PortError as error:
        text = f"the API server does not answer: {with_fix(error)}\n\nThe debug port: {silent}"
        raise debug_port.fail("status", Silent(text)) from error
