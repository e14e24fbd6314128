"""The Secret that holds the key for launch marks. The leader makes it; every replica reads it.

Deleting the Secret rotates the key: the leader makes another one and keeps the one that it used as the earlier key,
until no NodeClaim bears a mark by it.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kerf.ports import Conflict, PortError, Throttled, Unavailable
from kerf.runtime.secrets.launch_keys import KEY_BYTES, LaunchKeys
from kerf.runtime.secrets.stored_secret import Requests, StoredSecret

KEY, EARLIER_KEY = "key", "earlier-key"


@dataclass(frozen=True, slots=True)
class _Stored:
    """The keys that a Secret holds; None for one that is missing or malformed."""

    current: bytes | None
    earlier: bytes | None

    @classmethod
    def of(cls, secret: Mapping[str, Any]) -> _Stored:
        data = secret.get("data") or {}
        return cls(_key(data.get(KEY)), _key(data.get(EARLIER_KEY)))

    def data(self) -> dict[str, str]:
        keys = {KEY: self.current, EARLIER_KEY: self.earlier}
        return {name: base64.b64encode(key).decode() for name, key in keys.items() if key is not None}


def _key(text: object) -> bytes | None:
    try:
        key = base64.b64decode(str(text), validate=True)
    except ValueError:
        return None
    return key if len(key) >= KEY_BYTES else None


class LaunchSecret:
    """Keeps the Secret and `keys` in agreement. One thread uses it.

    `leads` says whether this process may write. `earlier_key_in_use`: whether a NodeClaim bears a mark by an earlier
    key. `replaced` is called when a key that was missing from the Secret, or malformed, has been replaced.
    """

    def __init__(
        self,
        kube: Requests,
        keys: LaunchKeys,
        *,
        namespace: str,
        name: str,
        leads: Callable[[], bool],
        earlier_key_in_use: Callable[[], bool],
        replaced: Callable[[], None],
    ) -> None:
        self._secret, self._keys = StoredSecret(kube, namespace, name, "Opaque"), keys
        self._leads, self._in_use, self._replaced = leads, earlier_key_in_use, replaced

    def keep(self) -> bool:
        """Read the key, make it or repair it; whether this process has one now. Raises PortError.

        Where the Secret cannot be had at all (Forbidden, say), marks are made by a key of this process first.
        """
        try:
            self._keep()
        except (Unavailable, Throttled, Conflict):
            raise
        except PortError:
            self._keys.use_own()
            raise
        return self._keys.current is not None

    def _keep(self) -> None:
        secret = self._secret.read()
        stored = _Stored.of(secret) if secret is not None else _Stored(None, None)
        wanted = self._wanted(stored)
        if wanted.current is None:
            return
        if wanted != stored and self._leads():
            self._secret.write(secret, wanted.data())
            if secret is not None and stored.current is None:
                self._replaced()
        elif stored.current is None:
            return
        self._keys.use(wanted.current, () if wanted.earlier is None else (wanted.earlier,))

    def _wanted(self, stored: _Stored) -> _Stored:
        """The keys as they should be: the one that this process used stays valid when the Secret has another."""
        used = self._keys.current
        current = stored.current
        if current is None:
            if not self._leads():
                return stored
            current = secrets.token_bytes(KEY_BYTES)
        earlier = stored.earlier
        if used is not None and used != current:
            earlier = used
        elif earlier is not None and used == current and not self._in_use():
            earlier = None
        return _Stored(current, None if earlier == current else earlier)
