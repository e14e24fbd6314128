"""Nodes that differ from their plan: less allocatable, fewer attachments, absent labels, late taints.

The weather says how nodes differ. The seed of the world and the number of the instance select the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Node
from kerf.sandbox.api.api_server import ApiServer
from kerf.sandbox.api.manifests import chance
from kerf.sandbox.aws.ec2 import Ec2
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.clock import Agenda
from kerf_api import labels
from kerf_api.quantity import amount
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint, encode


class Differences:
    """See the module."""

    def __init__(self, server: ApiServer, ec2: Ec2, agenda: Agenda, seed: int) -> None:
        self._server, self._ec2, self._agenda, self._seed = server, ec2, agenda, seed
        server.admit(self._admitted)

    def allocatable(self, machine: Machine, planned: Resources) -> Resources:
        """The allocatable of the machine's node, where `planned` is that of a node without difference."""
        if not self._differs(machine):
            return planned
        lacking = self._ec2.weather.lacking
        return Resources(
            {name: max(0, full - _part(lacking.get(name, "0"), name, full)) for name, full in planned.items()}
        )

    def attachable(self, node: Node) -> int:
        """The number of volumes that the node attaches."""
        weather, machine = self._ec2.weather, self._machine(node.spec.provider_id)
        lacking = weather.lacking_attachments if machine is not None and self._differs(machine) else 0
        return max(0, weather.attachable_volumes - lacking)

    def registered(self, name: str, machine: Machine) -> None:
        """The node of the machine has registered: its late taint comes after a while."""
        weather = self._ec2.weather
        if weather.late_taint and self._differs(machine):
            text, seconds = weather.late_taint, weather.late_taint_seconds
            self._agenda.after(weather.late_taint_after_seconds, lambda: self._add(name, text, seconds))

    # --- taints ---------------------------------------------------------------------------------------------------
    def _add(self, name: str, text: str, seconds: float) -> None:
        """Add the taint, unless the weather has changed since the registration."""
        if text != self._ec2.weather.late_taint:
            return
        taint = _taint(text)
        self._write(name, taint, present=True)
        if seconds:
            self._agenda.after(seconds, lambda: self._write(name, taint, present=False))

    def _write(self, name: str, taint: Taint, *, present: bool) -> None:
        """Add the taint to the node, or remove it; nothing if the node is gone."""
        record = self._server.find(kinds.NODE, "", name)
        if record is None:
            return
        there = record.manifest["spec"].get("taints") or ()
        others = [row for row in there if (row["key"], row["effect"]) != (taint.key, taint.effect)]
        taints = [*others, encode(taint)] if present else others
        self._server.patch(kinds.NODE, "", name, {"spec": {"taints": taints}})

    # --- labels ---------------------------------------------------------------------------------------------------
    def _admitted(self, kind: Kind, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """The Node as the admission plugin of the cluster passes it on."""
        missing = self._ec2.weather.missing_labels
        if kind.name != "Node" or not missing:
            return manifest
        machine = self._machine((manifest.get("spec") or {}).get("providerID", ""))
        if machine is None or not self._differs(machine):
            return manifest
        meta = manifest["metadata"]
        kept = {key: value for key, value in (meta.get("labels") or {}).items() if key not in missing}
        return {**manifest, "metadata": {**meta, "labels": kept}}

    # --- the nodes that differ ------------------------------------------------------------------------------------
    def _differs(self, machine: Machine) -> bool:
        weather = self._ec2.weather
        if weather.differing_types and machine.instance_type not in weather.differing_types:
            return False
        pool = machine.tags.get(labels.TAG_NODEPOOL, "")
        if weather.differing_nodepools and pool not in weather.differing_nodepools:
            return False
        return chance("differs", self._seed, machine.number) < weather.differing_share

    def _machine(self, provider_id: str) -> Machine | None:
        return self._ec2.instances.get(provider_id.rpartition("/")[2])


def _part(text: str, resource: str, full: int) -> int:
    """A quantity of a resource, or a percentage of the full amount."""
    return full * int(text[:-1]) // 100 if text.endswith("%") else amount(resource, text)


def _taint(text: str) -> Taint:
    """A taint from `key=value:Effect`."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)
