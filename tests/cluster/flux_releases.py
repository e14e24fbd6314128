"""Plays Flux's helm-controller, whose module is not to be had: HelmReleases are released by the real Helm.

It does what `manifests/flux/` asks it for: a chart out of a GitRepository's folder, values from a ConfigMap with those
of the HelmRelease over them. A field that it does not know is refused by its definition (`flux_helm_releases.yaml`), so
that nothing is asked for in vain.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import client

from .control_plane import ControlPlane

DEFINITION: Final = Path(__file__).parent / "flux_helm_releases.yaml"
GROUP, VERSION, PLURAL = "helm.toolkit.fluxcd.io", "v2", "helmreleases"
VALUES_KEY: Final = "values.yaml"
_GIVEN_SECONDS: Final = 60.0

Json = dict[str, Any]


class Releases:
    """`charts` are the folders that GitRepositories stand for, by name."""

    def __init__(
        self, control_plane: ControlPlane, api: client.CustomObjectsApi, namespace: str, charts: Mapping[str, Path]
    ) -> None:
        self._control_plane, self._api, self._namespace, self._charts = control_plane, api, namespace, charts

    def release(self, *names: str) -> None:
        """Install or upgrade what these HelmReleases, which may still be on their way, ask for, in this order."""
        for name in names:
            self._release(self._awaited(name))

    def finish(self, *names: str) -> None:
        """Say that they are ready, as the real one does when all that a release has made is."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name in names:
            generation = self._awaited(name)["metadata"]["generation"]
            ready = {"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "installed"}
            conditions = [{**ready, "lastTransitionTime": now, "observedGeneration": generation}]
            status = {"observedGeneration": generation, "conditions": conditions}
            place = (GROUP, VERSION, self._namespace, PLURAL, name)
            self._api.patch_namespaced_custom_object_status(*place, {"status": status})

    def _awaited(self, name: str) -> Json:
        deadline = time.monotonic() + _GIVEN_SECONDS
        while True:
            try:
                found = self._api.get_namespaced_custom_object(GROUP, VERSION, self._namespace, PLURAL, name)
                assert isinstance(found, dict)
                return found
            except client.ApiException as error:
                if error.status != 404 or time.monotonic() > deadline:
                    raise
            time.sleep(0.25)

    def _release(self, asked: Json) -> None:
        spec = asked["spec"]
        chart = spec["chart"]["spec"]
        folder = self._charts[chart["sourceRef"]["name"]] / chart["chart"]
        where = ("--namespace", spec["targetNamespace"], *self._create_namespace(spec))
        values = json.dumps(self._values(spec))
        command = ("upgrade", "--install", spec["releaseName"], str(folder), *where, "--values", "-")
        self._control_plane.helm(*command, input=values)

    def _create_namespace(self, spec: Json) -> tuple[str, ...]:
        return ("--create-namespace",) if spec["install"].get("createNamespace") else ()

    def _values(self, spec: Json) -> Json:
        """Those of ConfigMaps in their order, then its own. Source: HelmRelease v2, spec.valuesFrom and spec.values."""
        merged: Json = {}
        for row in spec.get("valuesFrom", ()):
            merged = _over(merged, self._config_map(row))
        return _over(merged, spec.get("values", {}))

    def _config_map(self, row: Json) -> Json:
        found = self._control_plane.kubectl(
            *("get", "configmap", row["name"], "-n", self._namespace, "-o", "json"), check=not row.get("optional")
        )
        if found.returncode != 0:
            return {}
        content: Json = yaml.safe_load(json.loads(found.stdout)["data"][row.get("valuesKey", VALUES_KEY)])
        return content


def _over(base: Json, upper: Json) -> Json:
    """The two as one, maps within maps too; what `upper` says wins."""
    both = {
        key: _over(base[key], value) if isinstance(base.get(key), dict) and isinstance(value, dict) else value
        for key, value in upper.items()
    }
    return {**base, **both}
