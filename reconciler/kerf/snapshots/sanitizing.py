"""Objects and facts as a file may contain them, without annotations, user data and messages of any user.

User data becomes a digest by a key that the file does not contain: a user with the text and the key can compare them.
A hash that covers what was left out is written as the hash of what is left, wherever it stands, so that the same nodes
drift in the file and in the cluster.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace as changed

from kerf.disruption.command import command_of
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.aws.cloud import DryRun, FleetRequest, Instance, LaunchTemplate
from kerf.model.aws.interruptions import Interruption, Message
from kerf.model.kinds import Kind
from kerf.model.kubernetes.objects import Pod, PodTemplate
from kerf.model.kubernetes.storage import PersistentVolume
from kerf.model.snapshot import Proposal, Snapshot
from kerf.snapshots.fields import ANNOTATIONS, MESSAGES_OF, TAG_PREFIXES, TAGS
from kerf.snapshots.hashes import plans, rewritten
from kerf_api import labels
from kerf_api.decoders import decoder_of
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodepool import NodePool

T = TypeVar("T")
_WORKLOADS: Final = (kinds.DAEMON_SET, kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.STATEFUL_SET)
#: A comment in every language that user data is written in, so that it is as valid as what it stands for.
_DIGEST: Final = "# digest:"
#: The text whose digest is the fingerprint of a key; no user data is the same.
_FINGERPRINTED: Final = b"kerf.sh/snapshot: the fingerprint of a key"
_FINGERPRINT_DIGITS: Final = 16


def digest(key: bytes, text: str) -> str:
    """What stands for user data by this key; a digest stands for itself."""
    if text.startswith(_DIGEST):
        return text
    return _DIGEST + hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def fingerprint(key: bytes) -> str:
    """The text by which a file names the key of its digests; empty without one. It does not have the key, but a short
    or common key can be guessed, as by the digests themselves."""
    return hmac.new(key, _FINGERPRINTED, hashlib.sha256).hexdigest()[:_FINGERPRINT_DIGITS] if key else ""


class Sanitizer:
    """The rules for one file.

    `key` is the key of its digests; `hashes` maps hashes that the cluster's objects bear to those of the same objects
    in the file. `known` are such hashes of earlier versions of these objects.
    """

    def __init__(self, key: bytes, snapshot: Snapshot, known: Mapping[str, str] = MappingProxyType({})) -> None:
        self._key = key
        self._special: Mapping[str, Callable[[Any], Any]] = {
            kinds.POD.name: self._pod,
            kinds.NODE_POOL.name: self._pool,
            kinds.NODE_CLASS.name: self._class,
            kinds.POD_TEMPLATE.name: self._templated,
            kinds.PV.name: self._volume,
            **{kind.name: self._workload for kind in _WORKLOADS},
        }
        #: Of objects as they are to those of objects as the file has them; empty until all are known.
        self._hashes: dict[str, str] = {}
        pairs = [(one, snapshot.node_classes.get(one.class_name)) for one in snapshot.node_pools.values()]
        #: The same of the digests of plans.
        self.plans: Mapping[str, str] = plans(pairs, self._written)
        bundle, found = snapshot.cluster.ca_bundle if snapshot.cluster is not None else "", dict(known)
        for kind, table in ((kinds.NODE_POOL, snapshot.node_pools), (kinds.NODE_CLASS, snapshot.node_classes)):
            for value in table.values():
                found |= rewritten(value, self.object(kind, value), bundle)
        self._hashes = {**found, **self.plans}

    @property
    def hashes(self) -> Mapping[str, str]:
        """Hashes of objects as they are, to those of the same objects in the file."""
        return self._hashes

    def _written(self, value: NodePool | EC2NodeClass) -> NodePool | EC2NodeClass:
        return self._pool(value) if isinstance(value, NodePool) else self._class(value)

    def object(self, kind: Kind, value: Any) -> Any:
        """An object of the cluster as the file has it."""
        special = self._special.get(kind.name)
        value = value if special is None else special(value)
        kept = self._annotations(value.metadata.annotations)
        if kept is value.metadata.annotations:
            return value
        return changed(value, metadata=changed(value.metadata, annotations=kept))

    @property
    def fingerprint(self) -> str:
        """That of the key of its digests."""
        return fingerprint(self._key)

    def digest(self, text: str) -> str:
        """What stands for a text that is left out; equal texts have equal ones."""
        return digest(self._key, text)

    # --- facts --------------------------------------------------------------------------------------------------
    def instance(self, one: Instance) -> Instance:
        """An instance with those of its tags that decisions read."""
        tags = {key: text for key, text in one.tags.items() if key in TAGS or key.startswith(TAG_PREFIXES)}
        return one if len(tags) == len(one.tags) else replace(one, tags=tags)

    def interruption(self, one: Interruption) -> Interruption:
        """What a message of the queue announces."""
        return replace(one, message=self.message(one.message))

    def message(self, one: Message) -> Message:
        """A message without its body, and without the receipt by which anybody could delete it."""
        return Message(one.id, "", "", one.sent)

    def dry_run(self, one: DryRun) -> DryRun:
        """With the identity of the class as the file has it."""
        return replace(one, identity=self._hashes.get(one.identity, one.identity))

    def proposal(self, one: Proposal) -> Proposal:
        """A proposal of consolidation, with its NodeClaims as the file has others."""
        return replace(one, replacements=tuple(self.object(kinds.NODE_CLAIM, claim) for claim in one.replacements))

    def request(self, one: FleetRequest) -> FleetRequest:
        """A fleet request with digests in place of user data; that of a dry run with its identity in the file."""
        group = self._hashes.get(one.group, one.group)
        return changed(one, group=group, templates=tuple(map(self.template, one.templates)))

    def template(self, one: LaunchTemplate) -> LaunchTemplate:
        """A launch template with a digest in place of its user data."""
        return changed(one, user_data=self.digest(one.user_data)) if one.user_data else one

    # --- objects ------------------------------------------------------------------------------------------------
    def _pod(self, pod: Pod) -> Pod:
        conditions = pod.status.conditions
        if not any(one.message and one.type not in MESSAGES_OF for one in conditions):
            return pod
        told = tuple(one if one.type in MESSAGES_OF else changed(one, message="") for one in conditions)
        return changed(pod, status=changed(pod.status, conditions=told))

    def _volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Of where it is, only the kind: paths of a node and IDs of volumes are left out."""
        spec = volume.spec
        found: dict[str, Any] = {
            name: {} for name in ("aws_elastic_block_store", "local", "host_path") if getattr(spec, name)
        }
        return changed(volume, spec=changed(spec, **found)) if found else volume

    def _pool(self, pool: NodePool) -> NodePool:
        told = tuple(changed(one, message=self.text(one.message)) for one in pool.status.conditions)
        if told != pool.status.conditions:
            pool = changed(pool, status=changed(pool.status, conditions=told))
        meta = pool.spec.template.metadata
        kept = {key: text for key, text in meta.annotations.items() if key in ANNOTATIONS}
        if len(kept) == len(meta.annotations):
            return pool
        template = changed(pool.spec.template, metadata=changed(meta, annotations=kept))
        return changed(pool, spec=changed(pool.spec, template=template))

    def _workload(self, value: Any) -> Any:
        spec = self._templated(value.spec)
        return value if spec is value.spec else changed(value, spec=spec)

    def _templated(self, value: T) -> T:
        """What has a pod template, whose annotations are those that decisions read."""
        template: PodTemplate = value.template  # type: ignore[attr-defined]
        kept = self._annotations(template.metadata.annotations)
        if kept is template.metadata.annotations:
            return value
        meta = changed(template.metadata, annotations=kept)
        return changed(value, template=changed(template, metadata=meta))  # type: ignore[type-var]

    def _class(self, node_class: EC2NodeClass) -> EC2NodeClass:
        text = node_class.spec.user_data
        if not text:
            return node_class
        return changed(node_class, spec=changed(node_class.spec, user_data=self.digest(text)))

    def _annotations(self, found: Mapping[str, str]) -> Mapping[str, str]:
        """Those that are kept, as they are kept; the same mapping when nothing is left out or changed."""
        if not found:
            return found
        kept = {key: self._annotation(key, text) for key, text in found.items() if key in ANNOTATIONS}
        return found if kept == found else kept

    def _annotation(self, key: str, text: str) -> str:
        if key == labels.LAUNCH_REQUEST:
            return self.launch_request(text)
        if key == labels.COMMAND:
            text = self._command(text)
        return self.text(text)

    def text(self, text: str) -> str:
        """A text with the hashes of the file."""
        for real, written in self._hashes.items():
            text = text.replace(real, written)
        return text

    def _command(self, text: str) -> str:
        """The text of a command with its NodeClaims as the file has others; empty when it cannot be read."""
        command = command_of({labels.COMMAND: text})
        if command is None:
            return ""
        claims = tuple(self.object(kinds.NODE_CLAIM, claim) for claim in command.claims)
        return text if claims == command.claims else text_of(changed(command, claims=claims))

    def patched(self, notes: Mapping[str, str | None]) -> dict[str, str | None]:
        """The annotations of a patch; None removes one."""
        kept = {key: text for key, text in notes.items() if key in ANNOTATIONS}
        return {key: None if text is None else self._annotation(key, text) for key, text in kept.items()}

    def launch_request(self, text: str) -> str:
        """The text of a fleet request with digests in place of user data; empty when it cannot be read, as its
        content is not known."""
        try:
            request = decoder_of(FleetRequest).decode(text)
        except (msgspec.DecodeError, RecursionError):
            return ""
        return msgspec.json.encode(self.request(request)).decode()
