"""User data of one node, rendered, and taken apart again as cloud-init does it."""

from __future__ import annotations

from email import message_from_string
from typing import Any

from kerf.ec2.userdata import userdata
from kerf.ec2.userdata.bootstrap import Bootstrap
from kerf_api.v1.meta import Taint
from tests.unit.ec2.ec2_facts import CLUSTER

LABELS = {"team": "platform", "karpenter.sh/nodepool": "default"}
TAINTS = (Taint(key="dedicated", value="db", effect="NoSchedule"), userdata.UNREGISTERED)


def render(family: str, custom: str | None = None, **changes: Any) -> str:
    given: dict[str, Any] = {
        "cluster": CLUSTER,
        "custom": custom,
        "labels": LABELS,
        "taints": TAINTS,
        "kubelet": None,
        "max_pods": 29,
        "raid0": False,
        **changes,
    }
    return userdata.render(family, Bootstrap(**given))


def parts(text: str) -> list[tuple[str, str]]:
    """Content type and text of each part, as cloud-init sees them."""
    message = message_from_string(text)
    assert message.get_content_type() == "multipart/mixed"
    _, *found = message.walk()
    return [(part.get_content_type(), str(part.get_payload())) for part in found]
