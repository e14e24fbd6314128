"""What moto lacks of an account: roles that EKS Pod Identity gives ServiceAccounts, and quotas of vCPUs.

Source: API references of EKS (`PodIdentityAssociation`) and Service Quotas (`GetServiceQuota`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from .settings import ACCOUNT

#: By code: running on-demand and spot instances of the standard families.
QUOTAS: Final = {"L-1216C47A": 640, "L-34B43A08": 640}
_PATH: Final = re.compile(r"/clusters/([^/]+)/pod-identity-associations(?:/([^/]+))?$")


class Association(msgspec.Struct, frozen=True):
    """The role of a ServiceAccount."""

    namespace: str
    account: str
    role_arn: str


def is_association(path: str) -> bool:
    return _PATH.search(path) is not None


def associations(path: str, query: str, known: Mapping[str, Association]) -> Any:
    """The answer to a list of associations, or to the description of one. `known` are those there are, by ID."""
    match = _PATH.search(path)
    assert match is not None
    cluster, named = match[1], match[2]
    if named:
        return {"association": {**_row(cluster, named, known[named]), "roleArn": known[named].role_arn}}
    wanted = {key: values[0] for key, values in parse_qs(query).items()}
    rows = [_row(cluster, id_, one) for id_, one in sorted(known.items())]
    return {"associations": [row for row in rows if all(row[key] == wanted.get(key, row[key]) for key in _SELECTED)]}


_SELECTED: Final = ("namespace", "serviceAccount")


def _row(cluster: str, id_: str, one: Association) -> dict[str, str]:
    arn = f"arn:aws:eks:us-west-2:{ACCOUNT}:podidentityassociation/{cluster}/{id_}"
    return {
        "clusterName": cluster,
        "namespace": one.namespace,
        "serviceAccount": one.account,
        "associationArn": arn,
        "associationId": id_,
    }


def quota(body: bytes, known: Mapping[str, float]) -> Any:
    """The answer to GetServiceQuota."""
    asked = msgspec.json.decode(body)
    code = asked["QuotaCode"]
    return {"Quota": {"ServiceCode": asked["ServiceCode"], "QuotaCode": code, "Value": known[code]}}
