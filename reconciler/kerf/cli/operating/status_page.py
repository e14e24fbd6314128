"""The page of `kerf status`: what is wrong first, then what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.judgement.troubles import ACTION_FAILS
from kerf.model.instants import rfc3339
from kerf_api import durations
from kerf_api.texts import counted

#: So many troubles of one code about objects of one kind are printed, and so much of a text.
_ALIKE: Final = 10
_LONGEST: Final = 700
#: A start that is shorter is no reason to look, whatever earlier ones took.
_UNUSUAL_SECONDS: Final = 120


def page(found: Mapping[str, Any]) -> str:
    """The whole text, with a line break at its end; `found` is what the debug port answers at /status."""
    lines = _lines(found["problems"], found["replica"], found["working"])
    unknown = (f"not checked: {one}" for one in found.get("not_checked", ()))  # an earlier version has none
    return "\n".join((*lines, *unknown)) + "\n"


def _lines(
    problems: Sequence[Mapping[str, Any]], replica: Mapping[str, Any], working: Mapping[str, Any]
) -> Iterator[str]:
    yield from troubles(problems, working["at"])
    if not problems:
        yield from _calm(replica, working["counts"].get("starting"))
    yield ""
    yield from _replica(replica)
    pace, counts = working["pace"], working["counts"]
    due = pace["next_look_in_seconds"]
    yield (
        f"loop      reconciled {_span(pace['looked_seconds_ago'])} ago"
        + (f", reconciles again in {_span(max(due, 0))}" if due is not None else "")
        + f"; {counted(pace['news_waiting'], 'watch event')} waiting"
        f"; a reconcile takes {_span(pace['median_turn_seconds'])}, {_span(pace['longest_turn_seconds'])} at most"
    )
    yield (
        f"cluster   {counted(counts['node_claims'], 'NodeClaim')}, {counted(counts['nodes'], 'Node')},"
        f" {counted(counts['instances'], 'instance')}; {counted(counts['pending_pods'], 'pod')} pending;"
        f" {counted(counts['under_way'], 'action')} under way"
    )
    yield from (f"            {key}" for key in working["under_way"])
    yield from _starting(counts.get("starting"))  # an earlier version has none
    yield from _reclaimed(counts.get("reclaimed") or {})
    yield from _sources(working["sources"])
    yield from _table("decided against, by reason", [(str(n), code) for code, n in working["refused"].items()])
    yield from _table(
        "not retried yet after a failure", [(_span(w["seconds"]), w["subject"]) for w in working["back_offs"]]
    )
    yield from _table("out of stock", [(_span(w["seconds"]), w["subject"]) for w in working["out_of_stock"]])


def _calm(replica: Mapping[str, Any], starting: Mapping[str, Any] | None) -> Iterator[str]:
    """What no problem means: a replica that does not lead knows no action, so that it cannot know one that fails."""
    if replica["leading"]:
        yield _late(starting) or "all is well"
        return
    namespace, pod = str(replica["lease"]).partition("/")[0], str(replica["leader"]).partition("_")[0]
    yield "no problem known to this replica, which does not lead; failing actions are known to the leader:"
    yield f"    kubectl exec -n {namespace or 'NAMESPACE'} {pod or 'POD'} -- kerf status"


def _late(starting: Mapping[str, Any] | None) -> str:
    """That a node starts for much longer than any node of the cluster has taken; empty if none does."""
    if starting is None:
        return ""
    longest = starting["longest_seconds"]
    if starting["seconds"] <= max(_UNUSUAL_SECONDS, 2 * (longest or 0)):
        return ""
    than = "2 minutes" if longest is None else "any earlier one took"
    return f"no problem yet, but a node has been starting for longer than {than}"


def _starting(row: Mapping[str, Any] | None) -> Iterator[str]:
    if row is None:
        return
    noun = "1 node, NodeClaim" if row["nodes"] == 1 else f"{row['nodes']} nodes, the oldest of NodeClaim"
    usual = "no earlier start is known"
    if row["usual_seconds"] is not None:
        usual = f"usual {_span(round(row['usual_seconds']))}, at most {_span(round(row['longest_seconds']))}"
    yield f"starting  {noun} {row['oldest']} since {_span(round(row['seconds']))}; {usual}"


def _reclaimed(pools: Mapping[str, int]) -> Iterator[str]:
    """Information, no problem: reclaims belong to spot, and Kerf has replaced the nodes."""
    if pools:
        rows = ", ".join(f"NodePool {name or 'unknown'} {number}" for name, number in pools.items())
        yield f"spot      {counted(sum(pools.values()), 'instance')} reclaimed by EC2 in the last hour: {rows}"


def page_of_outside(found: Mapping[str, Any], at: str) -> str:
    """The whole text about a cluster whose controller does not answer; `found` is the same as JSON, `at` the time."""
    return "\n".join(_outside(found, at)) + "\n"


def _outside(found: Mapping[str, Any], at: str) -> Iterator[str]:
    yield from troubles(found["problems"], at)
    space = found["namespace"] or "NAMESPACE"
    if not found["checked"]:
        yield "nothing was checked: no read of the API server succeeded"
    elif not found["problems"]:
        calm = _late(found["starting"]) or "no problem found in the API server"
        yield calm + (", as far as it was checked" if found["not_checked"] else "")
    yield ""
    yield f"source    the API server: {found['silent']}"
    yield f"leader    {found['leader'] or 'none known'}"
    yield from _starting(found["starting"])
    if not found["problems"]:
        yield f"          for back-offs and refusals: kubectl exec -n {space} deploy/kerf -- kerf status"
    yield from (f"not checked: {one}" for one in found["not_checked"])


def troubles(problems: Sequence[Mapping[str, Any]], at: str) -> Iterator[str]:
    """A line for each problem (as JSON has them), with when it began and how often; then a line with the fix.

    Of many problems that are alike the first ones are printed, and how many more there are.
    """
    now, alike = datetime.fromisoformat(at), Counter[tuple[str, str]]()
    for one in problems:
        group = (one["code"], one["object"].partition("/")[0])
        alike[group] += 1
        if alike[group] > _ALIKE:
            continue
        known = []
        if one["since"]:
            since = datetime.fromisoformat(one["since"])
            least = "at least " if one.get("at_least") else ""
            known.append(f"since {least}{rfc3339(since)} ({_span(max(round((now - since).total_seconds()), 0))})")
        if one["times"] > 1 and one["code"] == ACTION_FAILS:
            known.append(f"{one['times']} attempts")
        yield f"! {one['object']}: {_short(one['text'])}" + (f" [{', '.join(known)}]" if known else "")
        if one["fix"]:
            yield f"    fix: {one['fix']}"
    for (code, kind), count in alike.items():
        if count > _ALIKE:
            yield f"! {count - _ALIKE} more of {kind}: {code}; kerf status -o json has all of them"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (kerf status -o json has the whole text)"


def _sources(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line while all are fresh; else those that are not."""
    old = [one for one in sources if one["stale"]]
    if not old:
        oldest = max((one["age_seconds"] or 0 for one in sources), default=0)
        yield f"observed  {counted(len(sources), 'source')}, each complete at most {_span(oldest)} ago"
        return
    yield "observed  too long ago:"
    for source in old:
        age = source["age_seconds"]
        yield f"  {source['name']:<20} {'never complete' if age is None else f'complete {_span(age)} ago'}"


def _replica(replica: Mapping[str, Any]) -> Iterator[str]:
    build = f"{replica['version']}{' ' + replica['commit'] if replica['commit'] else ''}"
    yield f"replica   {replica['identity']}, Kerf {build}, log level {replica['log_level']}"
    who = "this replica" if replica["leading"] else replica["leader"] or "nobody"
    yield f"leader    {who}" + (f", by the lease {replica['lease']}" if replica["lease"] else "")


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    if rows:
        yield title
        width = max(len(first) for first, _ in rows)
        yield from (f"  {first:<{width}}  {second}" for first, second in rows)


def _span(seconds: float) -> str:
    return durations.go_text(timedelta(seconds=seconds))
