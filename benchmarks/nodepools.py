"""NodePools of a realistic size for the benchmarks of the linter and the webhook, no two of them alike."""

from __future__ import annotations

from typing import Any, Final

from kerf_api import labels

_AWS: Final = labels.AWS_GROUP


def nodepool(number: int, requirements: int = 30) -> dict[str, Any]:
    """A valid manifest with that many requirements; pools of other numbers have other names, values and limits."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": f"team-{number}"},
        "spec": {
            "weight": number % 100 + 1,
            "limits": {"cpu": str(1000 + number), "memory": f"{4000 + number}Gi"},
            "template": {
                "metadata": {"labels": {"example.com/team": f"team-{number}"}},
                "spec": {
                    "nodeClassRef": {"group": _AWS, "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [*_usual(number), *_own(number, requirements)][:requirements],
                    "taints": [{"key": "example.com/team", "value": f"team-{number}", "effect": "NoSchedule"}],
                    "expireAfter": "720h",
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "5m",
                "budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}],
            },
        },
    }


def _usual(number: int) -> list[dict[str, Any]]:
    """What most pools ask for."""
    return [
        {"key": labels.ARCH, "operator": "In", "values": ["amd64"]},
        {"key": labels.OS, "operator": "In", "values": ["linux"]},
        {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [labels.SPOT, labels.ON_DEMAND]},
        {"key": f"{_AWS}/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": f"{_AWS}/instance-generation", "operator": "Gt", "values": [str(number % 5 + 1)]},
        {"key": f"{_AWS}/instance-cpu", "operator": "Lt", "values": [str(64 + number)]},
        {"key": labels.ZONE, "operator": "In", "values": [f"us-east-1{zone}" for zone in "abc"]},
    ]


def _own(number: int, count: int) -> list[dict[str, Any]]:
    return [
        {"key": f"example.com/wish-{i}", "operator": "In", "values": [f"a-{number}-{i}", f"b-{number}-{i}"]}
        for i in range(count)
    ]
