"""Whether the API server reaches the webhook: by a NodePool that only the webhook refuses, created as a dry run."""

from __future__ import annotations

from typing import Any, Final

from kerf.ports import Invalid, PortError, Unavailable
from kerf.runtime.preflight.asking import Asker, Right
from kerf.runtime.preflight.findings import GOOD, WRONG, Finding, asked, unchecked

_WHAT: Final = "webhook"
_OURS: Final = "webhook.kerf.sh"
_CREATE: Final = Right("create", "nodepools", "karpenter.sh")
_LIST: Final = Right("list", "validatingwebhookconfigurations", "admissionregistration.k8s.io")
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_FIX: Final = (
    "kubectl get pods,endpointslices -n {} shows whether it runs; allow TCP {} from the control plane to its pods, or "
    "set webhook.hostNetwork=true where the API server does not reach the network of pods"
)
#: Schema and CEL accept it; the webhook alone refuses an annotation that is Kerf's own.
_PROBE: Final = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"generateName": "kerf-preflight-"},
    "spec": {
        "template": {
            "metadata": {"annotations": {"karpenter.k8s.aws/tagged": "true"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "kerf-preflight"},
                "requirements": [],
            },
        }
    },
}


def look(asker: Asker) -> Finding:
    """The finding about the webhook. Nothing is created."""

    def ask() -> Finding:
        hooks = [hook for one in asker.rows(_CONFIGURATIONS, _LIST) for hook in one.get("webhooks") or ()]
        own = [hook for hook in hooks if str(hook.get("name", "")).endswith(_OURS)]
        if not own:
            return Finding(_WHAT, GOOD, "not installed (webhook.admission is false)")
        asker.require(_CREATE)
        return _tried(asker, own[0].get("clientConfig") or {})

    return asked(_WHAT, ask, f"{_LIST} and {_CREATE}")


def _tried(asker: Asker, client: Any) -> Finding:
    service = client.get("service") or {}
    where = client.get("url") or f"Service {service.get('namespace')}/{service.get('name')}"
    fix = _FIX.format(service.get("namespace") or "NAMESPACE", "8443 (webhook.port)")
    try:
        asker.kube.request("POST", "/apis/karpenter.sh/v1/nodepools?dryRun=All", _PROBE)
    except Unavailable as error:
        if "failed calling webhook" in str(error):
            return Finding(_WHAT, WRONG, f"the API server does not reach {where}: {_reason(error)}", fix)
        return unchecked(_WHAT, str(error))
    except PortError as error:
        if "denied the request" in str(error) and _OURS in str(error):
            return Finding(_WHAT, GOOD, f"{where} answers the API server")
        if isinstance(error, Invalid):
            return unchecked(_WHAT, f"the API server refuses the NodePool before the webhook sees it: {error}")
        raise
    seen = f"the API server does not reach {where}, and accepts objects unchecked (failurePolicy Ignore)"
    return Finding(_WHAT, WRONG, seen, fix)


def _reason(error: PortError) -> str:
    return str(error).rpartition("failed calling webhook")[2].partition(": ")[2]
