"""Who acts, and who only watches: a standby that is warm, and a Karpenter controller that has the right of way.

Two replicas run with the chart's ServiceAccount. Karpenter is played by a thread that renews its lease, as it does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kerf.kube.client import KubeClient
from kerf.runtime.leadership.leases import DURATION, KARPENTER

from .control_plane import ControlPlane
from .installation import NAMESPACE, Installation
from .predecessor import HOLDER, SPACE, HeldLease
from .processes import free_ports

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
#: A lease is looked at every 2 s, and what changed shows in the cluster a moment later.
NOTICED = 10.0
#: What a Kerf that may act would have begun by then: a batch closes after 1 s.
WATCHED_FOR = 8.0
CERTIFICATE = "kerf-webhook-cert"


@pytest.fixture(scope="module")
def karpenter(control_plane: ControlPlane) -> Iterator[HeldLease]:
    """It runs before Kerf comes."""
    played = HeldLease(KubeClient.from_kubeconfig(str(control_plane.kubeconfig)))
    played.start()
    yield played
    played.die()
    control_plane.kubectl("delete", "lease", KARPENTER, "--namespace", SPACE, "--ignore-not-found")


@pytest.fixture(scope="module")
def kerf(
    control_plane: ControlPlane, karpenter: HeldLease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("leadership")
    control_plane.kubectl("delete", "secret", CERTIFICATE, "-n", NAMESPACE, "--ignore-not-found")
    with Installation(control_plane, folder, webhook=False, families=("c6a", "m6a")) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        installation.kubectl("scale", "deployment/web", "--replicas=2")
        yield installation
        karpenter.give_up()
        installation.kubectl("scale", "deployment/web", "--replicas=0")
        installation.kubectl("delete", "nodeclaims", "--all", "--wait=false")
        installation.wait(lambda: not installation.get("nodeclaims"), 90, "all nodes are given back")


def test_while_karpenter_leads_kerf_only_watches_and_says_so(kerf: Installation) -> None:
    kerf.wait(lambda: kerf.readiness()[0] == 200, 30, "it is ready: everything is listed")
    with _nothing_happens(kerf):
        time.sleep(WATCHED_FOR)
    status, text = kerf.readiness()
    assert status == 200
    assert f"{SPACE}/{KARPENTER}" in text
    assert HOLDER in text
    held = f'kerf_karpenter_lease{{name="{KARPENTER}",namespace="{SPACE}",state="held"}}'
    assert _value(kerf.metrics(), held) == 1
    assert _value(kerf.metrics(), "kerf_tick_duration_seconds_count") == 0  # nothing was decided
    (event,) = kerf.events("WaitsForKarpenter")
    assert HOLDER in event


def test_the_webhook_has_its_certificate_while_karpenter_leads(kerf: Installation) -> None:
    """Its pods wait for the Secret, so no release would be Ready before the take-over."""
    kerf.wait(lambda: CERTIFICATE in _secrets(kerf), 30, "the Secret of the webhook exists")
    assert HOLDER in kerf.readiness()[1]


def test_when_karpenter_is_gone_kerf_acts(kerf: Installation, karpenter: HeldLease) -> None:
    before = _objects(kerf)
    karpenter.die()
    took = kerf.wait(lambda: _objects(kerf) != before, DURATION.total_seconds() + NOTICED, "Kerf acts")
    print(f"\nKerf acted {took:.1f} s after Karpenter's end")
    kerf.wait(lambda: len(kerf.running()) == 2, 60, "two pods run")
    assert "only watching" not in kerf.readiness()[1]


def test_a_karpenter_that_comes_back_has_the_right_of_way(kerf: Installation, karpenter: HeldLease) -> None:
    karpenter.start()
    kerf.wait(lambda: HOLDER in kerf.readiness()[1], NOTICED, "Kerf has noticed")
    with _nothing_happens(kerf):
        kerf.kubectl("scale", "deployment/web", "--replicas=12")
        time.sleep(WATCHED_FOR)
    karpenter.give_up()
    took = kerf.wait(lambda: len(kerf.running()) == 12, 60, "all pods run")
    print(f"\nall pods ran {took:.1f} s after Karpenter gave its lease up")


def test_without_leave_to_read_the_lease_kerf_does_not_act_and_says_why(kerf: Installation) -> None:
    rules = kerf.rules()
    kept = [rule for rule in rules if "leases" not in rule["resources"]]
    assert len(kept) == len(rules) - 1
    with kerf.allowed_only(kept):
        kerf.wait(lambda: kerf.readiness()[0] == 503, 10 + NOTICED, "it is not ready any more")
        assert "forbidden" in kerf.readiness()[1]
        with _nothing_happens(kerf):
            kerf.kubectl("scale", "deployment/web", "--replicas=30")
            time.sleep(WATCHED_FOR)
        assert kerf.events("LeaseUnread")
    took = kerf.wait(lambda: kerf.readiness()[0] == 200, NOTICED, "it is ready again")
    print(f"\nready {took:.1f} s after the permission was given back")
    kerf.wait(lambda: len(kerf.running()) == 30, 60, "all pods run")


def test_the_standby_sees_everything_and_decides_nothing(kerf: Installation) -> None:
    metrics, health = free_ports(2)
    kerf.start_controller("--metrics-port", str(metrics), "--health-probe-port", str(health), name="standby")
    leader = kerf.holder()
    kerf.wait(lambda: kerf.readiness(health)[0] == 200, 30, "the standby has listed everything")
    kerf.kubectl("scale", "deployment/web", "--replicas=32")
    kerf.wait(lambda: len(kerf.running()) == 32, 60, "the leader works")
    assert _value(kerf.metrics(metrics), "kerf_tick_duration_seconds_count") == 0
    assert not re.search(r"^kerf_actions_total", kerf.metrics(metrics), re.MULTILINE)
    assert kerf.stop_controller() == 0
    kerf.wait(lambda: kerf.holder() not in ("", leader), 5, "the standby leads")
    assert _value(kerf.metrics(metrics), "kerf_tick_duration_seconds_count") > 0


# --- aids -------------------------------------------------------------------------------------------------------
@contextmanager
def _nothing_happens(kerf: Installation) -> Iterator[None]:
    """Nothing is written to our objects and nothing asked of AWS that changes anything."""
    before = _objects(kerf)
    kerf.aws.clear_calls()
    yield
    assert _objects(kerf) == before
    writing = ("Create", "Delete", "Terminate", "Run", "Add", "Tag", "Modify", "Put")
    assert [call.action for call in kerf.aws.calls() if call.action.startswith(writing)] == []


def _objects(kerf: Installation) -> dict[str, str]:
    """Resource versions of everything that the reconciler writes, but for what kubelets and the heartbeat write."""
    found = [one for kind in ("nodepools", "ec2nodeclasses", "nodeclaims") for one in kerf.get(kind)]
    return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in found}


def _value(text: str, series: str) -> float:
    (found,) = re.findall(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found)


def _secrets(kerf: Installation) -> set[str]:
    return {one["metadata"]["name"] for one in kerf.get("secrets", namespace=NAMESPACE)}
