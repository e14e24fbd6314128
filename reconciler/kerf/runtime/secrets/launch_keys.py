"""The key behind launch marks (`model.launch_marks`): marks are made where actions are performed, and checked where
NodeClaims come in.

A mark is the digest of the request and an HMAC-SHA256 over the cluster's name, the NodeClaim's UID, the launch group
and that digest. So the group stays covered when the request is taken off the NodeClaim.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.plan import Action, PatchObject
from kerf.ports import Unavailable
from kerf_api import labels

KEY_BYTES: Final = 32
_PURPOSE: Final = "kerf.sh/launch-mark 1"
#: The key of a process that has no Secret for one. Marks by it do not outlive the process.
_OF_THE_PROCESS: Final = secrets.token_bytes(KEY_BYTES)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the mark on a NodeClaim covers, and whether it is by an earlier key."""

    group: bool = False
    request: bool = False
    earlier_key: bool = False


@dataclass(frozen=True, slots=True)
class _Keys:
    version: int = 0
    current: bytes | None = None
    earlier: tuple[bytes, ...] = ()


class LaunchKeys:
    """The keys of one cluster. Any thread may use it: a change replaces all of it at once."""

    def __init__(self, cluster_name: str) -> None:
        self._cluster_name, self._keys = cluster_name, _Keys()

    @classmethod
    def of_the_process(cls, cluster_name: str) -> LaunchKeys:
        """For a process that keeps no Secret: every instance in the process has the same key."""
        found = cls(cluster_name)
        found.use_own()
        return found

    @property
    def version(self) -> int:
        """Another number after each change; 0 while there is no key."""
        return self._keys.version

    @property
    def current(self) -> bytes | None:
        """The key by which marks are made; None while it is not known."""
        return self._keys.current

    def use(self, current: bytes, earlier: tuple[bytes, ...] = ()) -> None:
        """Make marks by `current`, and accept those by the earlier keys."""
        known = self._keys
        if (known.current, known.earlier) != (current, earlier):
            self._keys = _Keys(known.version + 1, current, earlier)

    def use_own(self) -> None:
        """Make marks by the key of this process, unless there is a key."""
        if self._keys.current is None:
            self.use(_OF_THE_PROCESS)

    def mark(self, launch: MarkedLaunch) -> str:
        """The mark for a NodeClaim. Raises Unavailable while there is no key."""
        current = self._keys.current
        if current is None:
            raise Unavailable("the key for launch marks has not been read yet")
        digest = _digest(launch.request)
        return f"{digest}.{self._code(current, launch.claim_uid, launch.group, digest)}"

    def check(self, uid: str, annotations: Mapping[str, str]) -> Checked:
        """Check the mark among the annotations of the NodeClaim of this UID."""
        keys, group = self._keys, annotations.get(labels.LAUNCH_GROUP, "")
        digest, _, code = annotations.get(labels.LAUNCH_MARK, "").partition(".")
        if keys.current is None or not group or not code:
            return Checked()
        for key in (keys.current, *keys.earlier):
            if hmac.compare_digest(self._code(key, uid, group, digest).encode(), code.encode()):
                request = annotations.get(labels.LAUNCH_REQUEST)
                return Checked(True, request is not None and _digest(request) == digest, key != keys.current)
        return Checked()

    def marked(self, action: Action) -> Action:
        """The action with the mark that it asks for. Raises Unavailable while there is no key."""
        if not isinstance(action, PatchObject) or action.marks is None:
            return action
        meta = action.patch.get("metadata", {})
        notes = {**meta.get("annotations", {}), labels.LAUNCH_MARK: self.mark(action.marks)}
        return replace(action, patch={**action.patch, "metadata": {**meta, "annotations": notes}})

    def _code(self, key: bytes, uid: str, group: str, digest: str) -> str:
        text = json.dumps([_PURPOSE, self._cluster_name, uid, group, digest])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _digest(request: str) -> str:
    return hashlib.sha256(request.encode()).hexdigest()
