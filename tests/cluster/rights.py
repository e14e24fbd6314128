"""`python -m tests.cluster.rights FOLDER [--part]`: what Kerf asked of API servers, beside what its roles give.

The records (see `record`) of all control planes of a run are put together and compared in both directions: a call that
was refused, or that no rule of the chart allows, is a difference, and so is a rule that no call needed. The chart is
rendered with everything switched on, as in the suite. A cluster-wide rule on what lies in namespaces counts as needed
only by a call outside of Kerf's own namespace: for that a Role would do. With `--part` only a part of the tests has
run, and a rule that no call needed is no difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from . import grants, record
from .binaries import find_binaries
from .charts import Helm, Objects
from .grants import Grant
from .record import Mark

_SPREAD: Final = """podTopologySpread:
  defaultConstraints:
    - {maxSkew: 3, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
"""
#: All that adds a rule to the chart's roles.
EVERYTHING: Final[Mapping[str, Any]] = {
    "settings": {
        "featureGates": {"nodeOverlay": True, "capacityBuffer": True},
        "ignoreDRARequests": False,
        "nominatePods": True,
        "schedulerConfig": _SPREAD,
    }
}
#: The page in the cluster, which the chart has off by default.
PAGE_VALUES: Final[Mapping[str, Any]] = {"ui": {"enabled": True}}
PAGE: Final = f"system:serviceaccount:{record.KERF}:kerf-ui"
CONTROLLER: Final = f"system:serviceaccount:{record.KERF}:kerf"
#: What a cluster allows everybody who has a name. Source: Kubernetes, "Using RBAC Authorization", discovery roles and
#: system:basic-user.
EVERYBODY: Final = {
    Grant("", "/version", "get"): "which rules of Kubernetes hold (`cloud` of the controller, `kerf preflight`)",
    Grant("authorization.k8s.io", "selfsubjectaccessreviews", "create"): "`kerf preflight` asks what it may do",
    Grant("authentication.k8s.io", "selfsubjectreviews", "create"): "`kerf preflight` asks who it is",
    **{
        Grant("", f"/openapi/v3/apis/{group}/v1", "get"): "whether the served definitions are older than Kerf"
        for group in ("karpenter.sh", "karpenter.k8s.aws")
    },
}
#: Tests that take rights away, or ask for what nobody gave, and what they want to see.
PROVOKED: Final = {
    f"tests/cluster/{test}": why
    for test, why in (
        ("test_drills.py::test_a_controller_that_starts_without_leave_to_see_pods_touches_nothing", "no blind ends"),
        ("test_drills.py::test_without_leave_to_see_pods_no_node_is_touched", "nothing is ended blindly"),
        (
            "test_end_to_end.py::test_a_preflight_finds_nothing_wrong_and_names_the_right_that_is_taken_away",
            "a preflight only asks whether it may",
        ),
        ("test_leadership.py::test_without_leave_to_read_the_lease_kerf_does_not_act_and_says_why", "nobody acts"),
        (
            "test_operations.py::test_the_certificate_of_the_webhook_is_made_announced_and_renewed",
            "Secrets are not listed",
        ),
        ("test_operations.py::test_without_leave_to_evict_a_drain_waits_and_says_why", "a drain waits"),
        ("test_slips.py::test_after_installation", "preflight names what the controller may not do"),
        ("test_status.py::test_an_eviction_that_is_forbidden", "the status names what is forbidden"),
        ("test_status.py::test_permissions_that_the_caller_lacks_are_named", "an account that may not look"),
        ("test_rights.py::test_whose_finalizers_may_not_be_updated_nobody_may_own", "an admission plugin asks"),
    )
}
#: The code of a refusal. Where the roles had allowed the call, admission refused it.
FORBIDDEN: Final = 403
#: The API server's authorizer follows its Roles by a watch.
LAG: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Call:
    """What one account asked for, when, and what became of it: `permitted` by the roles, and the answer's code."""

    user: str
    asked: Grant
    at: datetime
    permitted: bool
    code: int

    @property
    def refused(self) -> bool:
        return not self.permitted or self.code == FORBIDDEN


def call(event: Mapping[str, Any]) -> Call:
    """Of one line of an audit log. A path that is no resource stands in place of one."""
    ref = event.get("objectRef")
    if ref is None:
        asked = Grant("", event["requestURI"].partition("?")[0], event["verb"])
    else:
        resource = "/".join(part for part in (ref["resource"], ref.get("subresource")) if part)
        asked = Grant(ref.get("apiGroup", ""), resource, event["verb"], ref.get("name", ""), ref.get("namespace", ""))
    return Call(
        event["user"]["username"],
        asked,
        datetime.fromisoformat(event["requestReceivedTimestamp"]),
        _decision(event) == "allow",
        int(event.get("responseStatus", {}).get("code", 0)),
    )


def calls(audit: Path, user: str) -> Iterator[Call]:
    """What accounts whose names begin so asked for; without what was turned away before anybody looked at rights."""
    decided = (call(event) for event in record.events(audit) if _decision(event))
    return (one for one in decided if one.user.startswith(user))


def _decision(event: Mapping[str, Any]) -> str:
    return str(event.get("annotations", {}).get("authorization.k8s.io/decision", ""))


@dataclass(slots=True)
class Comparison:
    """Takes in one record after the other. `given` is what the controller's roles give it, `page` what the page has."""

    given: frozenset[Grant]
    provoked: Mapping[str, str] = field(default_factory=lambda: PROVOKED)
    everybody: Iterable[Grant] = tuple(EVERYBODY)
    planes: int = 0
    calls: int = 0
    #: Calls that tests wanted to be refused, and were.
    refused: int = 0
    used: set[Grant] = field(default_factory=set)
    #: What is wrong, and how often.
    wrong: Counter[str] = field(default_factory=Counter)
    page: frozenset[Grant] = frozenset()

    def take(self, audit: Path) -> None:
        """One control plane's record, with its marks."""
        marks = record.marks(audit)
        for one in calls(audit, f"system:serviceaccount:{record.KERF}:"):
            self.calls += 1
            if not one.refused:
                self._allowed(one)
            elif any(self._excuses(mark, one) for mark in marks):
                self.refused += 1
            else:
                self.wrong[f"refused: {_words(one)}"] += 1
        self.planes += 1
        for mark in marks:
            if mark.missing is not None and mark.test not in self.provoked:
                self.wrong[f"takes rights away, and is not in the list of tests that do: {mark.test}"] += 1

    def differences(self, *, part: bool = False) -> list[str]:
        """Everything that is wrong by now; without rules that no call needed if only a `part` of the tests ran."""
        many = [f"{what}{f' ({times} times)' if times > 1 else ''}" for what, times in sorted(self.wrong.items())]
        idle = [] if part else sorted({*self.given, *self.everybody} - self.used)
        return [*many, *(f"given, and never asked for: {one}" for one in idle)]

    def _allowed(self, one: Call) -> None:
        if one.user == PAGE and any(grant.allows(one.asked) for grant in self.page):
            return
        own = [grant for grant in self.given if grant.allows(one.asked)] if one.user == CONTROLLER else []
        all_may = [grant for grant in self.everybody if grant.allows(one.asked)] if one.user == CONTROLLER else []
        if not own and not all_may:
            self.wrong[f"allowed by no rule of the chart: {_words(one)}"] += 1
        wide = one.asked.namespace != record.KERF
        self.used.update(grant for grant in own if grant.namespace or wide)
        self.used.update(all_may)

    def _excuses(self, mark: Mark, one: Call) -> bool:
        """Whether a refusal is what the test wanted. Who may not name an owner misses leave for its finalizers.

        An API server that starts refuses what it allows later.
        """
        if not mark.since <= one.at <= mark.until + LAG:
            return False
        if mark.missing is None:
            return not one.permitted and any(grant.allows(one.asked) for grant in (*self.given, *self.everybody))
        missing = {*grants.of_rules(mark.missing)}
        if not one.permitted:
            return any(grant.allows(one.asked) for grant in missing)
        owners = {grant for grant in missing if grant.resource.endswith("/finalizers")}
        self.used |= owners
        return bool(owners)


def given(helm: Helm) -> frozenset[Grant]:
    """What the chart's roles give the controller with everything switched on."""
    return of_chart(helm.template(values=EVERYTHING, release=record.KERF, namespace=record.KERF))


def of_page(helm: Helm) -> frozenset[Grant]:
    """What the chart's roles give the page."""
    objects = helm.template(values=PAGE_VALUES, release=record.KERF, namespace=record.KERF)
    return grants.of_account(objects.values(), record.KERF, "kerf-ui")


def of_chart(objects: Objects) -> frozenset[Grant]:
    return grants.of_account(objects.values(), record.KERF, "kerf")


def _words(one: Call) -> str:
    place = "" if one.asked.namespace or one.asked.resource.startswith("/") else " in the whole cluster"
    return f"{one.asked}{place} by {one.user.removeprefix('system:serviceaccount:')} (code {one.code})"


def verdict(found: Comparison, folder: Path, *, part: bool = False) -> int:
    """Compare all records of a folder, and say what came of it; 0 when there is no difference."""
    for audit in record.records(folder):
        found.take(audit)
    wrong = found.differences(part=part) if found.planes else [f"nothing was recorded in {folder}"]
    print(f"{found.calls} calls on {found.planes} control planes, {found.refused} of them refused as tests want it;")
    print(f"{len(found.given & found.used)} of {len(found.given)} rights that the chart gives were needed")
    print("\n".join([f"{len(wrong)} differences", *wrong]))
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    """Compare with the chart."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.rights", description="Compare calls and roles.")
    parser.add_argument("folder", type=Path, help="the records of the control planes of a run")
    parser.add_argument("--part", action="store_true", help="only a part of the tests ran: not every rule is needed")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        helm = Helm(find_binaries() / "helm", Path(home))
        found = Comparison(given(helm), page=of_page(helm))
    return verdict(found, asked.folder, part=asked.part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
