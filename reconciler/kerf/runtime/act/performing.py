"""How each action is performed through the ports: one small function per kind of action."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.kubernetes import pods
from kerf.model.plan import (
    Action,
    CreateNodeClaim,
    DeleteClassResources,
    DeleteMessage,
    DeleteObject,
    DeleteUnused,
    EnsureInstanceProfile,
    EnsureTemplate,
    EvictPod,
    LaunchInstances,
    PatchObject,
    TagInstance,
    TerminateInstance,
    ValidateClass,
)
from kerf.ports import Cloud, Kube, NotLeading, WorldChanged
from kerf_api.v1.meta import encode

#: Whether this process leads, still.
MayAct = Callable[[], bool]


@singledispatch
def perform(action: Action, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    """Do it; what the port answered. Raises PortError.

    Where another request comes first, which may take long, `may_act` is asked again before the one that counts.
    """
    raise TypeError(f"no such action: {action!r}")


def target(action: Action) -> Ref | None:
    """The API object that an action writes, if it writes one."""
    if isinstance(action, CreateNodeClaim):
        return Ref.of(kinds.NODE_CLAIM, action.claim)
    if isinstance(action, (PatchObject, DeleteObject, EvictPod)):
        return action.ref
    return None


def concerned(action: Action) -> Ref | None:
    """The API object that an action is about, if there is one, though it may not write it."""
    if isinstance(action, (EnsureInstanceProfile, ValidateClass, DeleteClassResources)):
        return Ref(kinds.NODE_CLASS.name, "", action.class_name)
    return target(action)


@perform.register
def _(action: CreateNodeClaim, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    kind = kinds.NODE_CLAIM
    manifest = {"apiVersion": kind.api_version, "kind": kind.name, **encode(action.claim)}
    manifest.pop("status", None)
    return kube.create(kind, manifest)


@perform.register
def _(action: PatchObject, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    return kube.patch(
        action.ref, action.patch, subresource=action.subresource, resource_version=action.resource_version
    )


@perform.register
def _(action: DeleteObject, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    if action.expected_pods is not None and action.node_name:
        _look_once_more(action.node_name, action.expected_pods, kube)
        if not may_act():
            raise NotLeading(f"{action.ref}: not deleted: the last reconcile took too long")
    kube.delete(action.ref, uid=action.uid, grace_seconds=action.grace_seconds)


def _look_once_more(node_name: str, expected: frozenset[str], kube: Kube) -> None:
    """Raises WorldChanged when a pod that is to move was bound to the node meanwhile."""
    listing = kube.list(kinds.POD, field_selector=f"spec.nodeName={node_name}")
    new = sorted(p.key for p in listing.items if p.metadata.uid not in expected and pods.reschedulable(p))
    if new:
        raise WorldChanged(
            f"{new[0]} was bound to node {node_name}" + (f", and {len(new) - 1} more" if new[1:] else "")
        )


@perform.register
def _(action: EvictPod, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    kube.evict(action.ref, uid=action.uid)


@perform.register
def _(action: LaunchInstances, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    return cloud.create_fleet(action.request, may_act)


@perform.register
def _(action: EnsureTemplate, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.ensure_template(action.template)


@perform.register
def _(action: TerminateInstance, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.terminate(action.instance_id)


@perform.register
def _(action: TagInstance, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.tag(action.instance_id, action.tags)


@perform.register
def _(action: EnsureInstanceProfile, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.ensure_instance_profile(action.profile, action.role, action.path, action.tags)


@perform.register
def _(action: ValidateClass, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    return cloud.dry_run(action.request)


@perform.register
def _(action: DeleteClassResources, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.delete_class_resources(action.class_name, action.profile_path)


@perform.register
def _(action: DeleteUnused, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.delete_resource(action.resource)


@perform.register
def _(action: DeleteMessage, kube: Kube, cloud: Cloud, may_act: MayAct) -> Any:
    cloud.delete_message(action.message)
