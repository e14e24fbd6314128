"""A caller without permissions, and an API server that fails: no check is good or wrong because of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.ports import AlreadyGone, Forbidden, Listing, PortError, Unavailable
from kerf.runtime.preflight import cluster
from kerf.runtime.preflight.asking import Asker, Right
from kerf.runtime.preflight.findings import GOOD, UNCHECKED, WRONG, NotAllowed
from kerf.runtime.preflight.run import Result, World, look
from kerf.runtime.preflight.situation import Given
from kerf.runtime.settings.settings import SettingsError

from .preflights import Account, ApiServer

pytestmark = pytest.mark.usefixtures("no_calls")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEPLOYMENTS = "list deployments"


@pytest.fixture
def no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions in AWS have tests of their own."""
    monkeypatch.setattr("kerf.runtime.preflight.account.calls", lambda clients, options: iter(()))
    monkeypatch.setattr("kerf.runtime.preflight.account.look_at_classes", lambda cloud, classes: iter(()))


@dataclass
class Server(ApiServer):
    """Lists of these kinds fail so."""

    failing: Mapping[str, PortError] | None = None

    def list(self, kind: Kind) -> Listing:
        if self.failing and kind.name in self.failing:
            raise self.failing[kind.name]
        return super().list(kind)


class Reviewless(Server):
    def request(self, method: str, path: str, body: Any = None) -> Any:
        if path.endswith("accessreviews"):
            raise Forbidden(f"{method} {path}: 403 forbidden")
        return super().request(method, path, body)


def checked(api: Any, *arguments: str, environment: Mapping[str, str] = {}) -> list[Result]:
    api.answers = {"/version": {"major": "1", "minor": "36"}, **api.answers}
    world = World(lambda: api, lambda options: Account(), lambda options, client: None, lambda: NOW)  # type: ignore[arg-type, return-value]
    return list(look(world, Given(arguments or ("--cluster-name=demo",), environment, {}), "fix of {}".format))


def by_check(found: list[Result], name: str) -> list[tuple[str, str]]:
    return [(one.how, one.seen) for check, one in found if check.name == name]


@pytest.mark.parametrize("caller", ["admin", "system:serviceaccount:default:someone"])
def test_without_the_deployment_nothing_is_said_of_its_account(caller: str) -> None:
    """A caller that is another ServiceAccount is not taken for the controller."""
    found = checked(Server(denied=(DEPLOYMENTS,), lacking=("create pods/eviction",), caller=caller))
    unknown = (UNCHECKED, "not checked: needs list deployments.apps")
    for check in ("permissions", "controller-role", "controller-clock", "image", "dns", "queue"):
        assert by_check(found, check) == [unknown], check
    assert not any(one.how == WRONG and "ServiceAccount" in one.seen for _, one in found)


def test_in_the_container_of_the_controller_its_own_account_is_checked() -> None:
    api = Server(denied=(DEPLOYMENTS, "patch nodes"), caller="system:serviceaccount:kerf:kerf")
    found = checked(api, environment={"LAUNCH_KEY_SECRET": "kerf/launch-key"})
    assert (WRONG, "ServiceAccount kerf/kerf has no permission") in by_check(found, "permissions")


def test_settings_that_are_required_name_the_missing_permission() -> None:
    with pytest.raises(SettingsError) as raised:
        checked(Server(denied=(DEPLOYMENTS,)), "--isolated-vpc=false")
    assert "the settings of an installed Kerf are not known (needs list deployments.apps)" in raised.value.problems[-1]


def test_without_reviews_the_right_to_them_is_named() -> None:
    needed = "create selfsubjectaccessreviews.authorization.k8s.io"
    with pytest.raises(NotAllowed, match=needed):
        Asker(Reviewless()).may(Right("list", "nodes"))
    found = checked(Reviewless())
    for check in ("settings", "region", "dns", "webhook", "image"):
        ((how, seen),) = by_check(found, check)
        assert (how, f"needs {needed}" in seen) == (UNCHECKED, True), check
    assert {how for how, _ in by_check(found, "kinds")} == {UNCHECKED}


@pytest.mark.parametrize("missing", [kinds.NODE_POOL, kinds.NODE_CLASS])
def test_objects_that_may_not_be_listed_are_not_taken_for_none(missing: Kind) -> None:
    api = Server(denied=(DEPLOYMENTS, f"list {missing.plural}"), failing={missing.name: Forbidden("no")})
    found = checked(api)
    row = (UNCHECKED, f"not checked: needs list {missing.plural}.{missing.group}")
    assert by_check(found, "node-pools") == [row]
    others = ("spot-role",) if missing is kinds.NODE_POOL else ("node-role", "discovery", "node-classes")
    for check in others:
        assert by_check(found, check) == [row], check


def test_kinds_that_are_not_served_leave_the_first_checks_as_they_are() -> None:
    gone = Unavailable("404")
    gone.__cause__ = AlreadyGone("404")
    found = checked(Server(denied=(DEPLOYMENTS,), failing={kinds.NODE_CLASS.name: gone}))
    assert not any(how == UNCHECKED and "404" in seen for how, seen in by_check(found, "node-role"))
    assert by_check(found, "node-pools") == by_check(found, "node-classes") == []


def test_a_busy_server_is_no_fault_of_a_kind() -> None:
    busy = Unavailable("GET /api/v1/nodes: 500 busy")
    api = ApiServer({f"{kind.path()}?limit=1": {} for kind in kinds.WATCHED} | {"/api/v1/nodes?limit=1": busy})
    rows = list(cluster.kinds_served(Asker(api), Settings("demo")))
    assert [(one.what, one.how) for one in rows if one.how != GOOD] == [("nodes can be read", UNCHECKED)]


def test_a_daemon_set_list_that_is_refused_or_fails() -> None:
    for error, seen in ((Forbidden("GET x: 403 no"), "needs list daemonsets.apps"), (Unavailable("500"), "500")):
        found = checked(Server(denied=(DEPLOYMENTS,), failing={kinds.DAEMON_SET.name: error}))
        assert by_check(found, "agent") == [(UNCHECKED, f"not checked: {seen}")]


def test_requests_without_credentials_end_it() -> None:
    class Nobody(Server):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            if path == "/version":
                return {"major": "1", "minor": "36"}
            raise Forbidden(f'{method} {path}: 403 User "system:anonymous" cannot create resource')

    (first, *rest) = checked(Nobody())
    assert (first[1].how, "have no credentials" in first[1].seen, "system:anonymous" in first[1].fix) == (
        WRONG,
        True,
        True,
    )
    assert not any(check.name == "kinds" for check, _ in rest)
