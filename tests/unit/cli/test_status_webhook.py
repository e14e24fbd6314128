"""`kerf status` beside a controller that answers: a webhook that fails is a problem, of the same cluster only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from kerf.cli.operating import webhook
from kerf.ports import Forbidden, Invalid, Lease, PortError, Unavailable
from tests.unit.runtime.preflights import INSTALLED, TRIED, ApiServer

EXPIRED = Unavailable('POST: 500 failed calling webhook "validation.webhook.kerf.sh": x509: certificate has expired')
REPLICA = {"lease": "kerf/karpenter-leader-election", "leader": "kerf-1"}


@dataclass
class Cluster(ApiServer):
    """An API server with the lease of a leader, or with an error in its place."""

    lease: Lease | PortError | None = field(default_factory=lambda: Lease(holder="kerf-1"))

    def get_lease(self, namespace: str, name: str) -> Lease | None:
        assert (namespace, name) == ("kerf", "karpenter-leader-election")
        if isinstance(self.lease, PortError):
            raise self.lease
        return self.lease


def test_an_expired_certificate_is_a_problem_with_its_fix() -> None:
    found = webhook.trouble_beside(Cluster({**INSTALLED, TRIED: EXPIRED}), REPLICA)
    assert found is not None
    assert found.text == "the API server does not reach Service kerf/kerf-webhook: x509: certificate has expired"
    assert "kubectl get pods,endpointslices -n kerf" in found.fix


@pytest.mark.parametrize("right", ["create nodepools", "list validatingwebhookconfigurations"])
def test_without_the_permission_nothing_is_said_or_tried(right: str) -> None:
    assert webhook.trouble_beside(Cluster({**INSTALLED, TRIED: EXPIRED}, denied=(right,)), REPLICA) is None


def test_a_webhook_that_answers_is_no_problem() -> None:
    refused = Invalid('POST: 400 admission webhook "validation.webhook.kerf.sh" denied the request: x')
    assert webhook.trouble_beside(Cluster({**INSTALLED, TRIED: refused}), REPLICA) is None


@pytest.mark.parametrize("lease", [None, Lease(holder=""), Lease(holder="kerf-2")], ids=str)
@pytest.mark.parametrize("replica", [REPLICA, {**REPLICA, "leader": ""}], ids=str)
def test_the_webhook_of_another_cluster_is_not_tried(lease: Lease | None, replica: Mapping[str, Any]) -> None:
    assert webhook.trouble_beside(Cluster({**INSTALLED, TRIED: EXPIRED}, lease=lease), replica) is None


def test_without_leader_election_nothing_says_which_cluster_it_is() -> None:
    assert webhook.trouble_beside(Cluster({**INSTALLED, TRIED: EXPIRED}), {"lease": "", "leader": "kerf-1"}) is None


def test_a_lease_that_may_not_be_read_is_an_error_for_the_caller() -> None:
    with pytest.raises(Forbidden):
        webhook.trouble_beside(Cluster(lease=Forbidden("leases")), REPLICA)
