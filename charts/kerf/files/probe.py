"""What `helm test` runs: PROBE_METRICS has to answer, and PROBE_WEBHOOK to refuse a NodePool that names no node class.

A Service leads to pods that are ready alone, so an answer with metrics comes from a replica that is. Who does not
answer is asked again until PROBE_SECONDS have passed. The webhook is trusted by PROBE_CA (PEM, base64) or
PROBE_CA_FILE, where there is one, else by what the image trusts.
"""

import base64
import json
import os
import ssl
import sys
import time
import urllib.request

REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "probe",
        "kind": {"group": "karpenter.sh", "version": "v1", "kind": "NodePool"},
        "resource": {"group": "karpenter.sh", "version": "v1", "resource": "nodepools"},
        "operation": "CREATE",
        "object": {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "probe"},
            "spec": {"template": {"spec": {"requirements": []}}},
        },
    },
}


def metrics(url: str) -> None:
    with urllib.request.urlopen(url, timeout=5) as answer:
        if not answer.read(1):
            raise OSError("no metrics")


def webhook(url: str) -> None:
    context = ssl.create_default_context()
    if os.environ.get("PROBE_CA"):
        context.load_verify_locations(cadata=base64.b64decode(os.environ["PROBE_CA"]).decode())
    elif os.path.exists(os.environ.get("PROBE_CA_FILE", "")):
        context.load_verify_locations(cafile=os.environ["PROBE_CA_FILE"])
    request = urllib.request.Request(url, json.dumps(REVIEW).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5, context=context) as answer:
        if json.load(answer)["response"]["allowed"]:
            raise OSError("lets a wrong NodePool pass")


def main() -> None:
    deadline = time.monotonic() + float(os.environ.get("PROBE_SECONDS", "60"))
    for variable, ask in (("PROBE_METRICS", metrics), ("PROBE_WEBHOOK", webhook)):
        url = os.environ.get(variable)
        while url:
            try:
                ask(url)
            except OSError as problem:
                if time.monotonic() >= deadline:
                    sys.exit(f"{url}: {problem}")
                time.sleep(1)
            else:
                print(f"{url}: ok")
                break


main()
