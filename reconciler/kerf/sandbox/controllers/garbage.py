"""The garbage collector: an object whose owners are all gone goes too, in the background."""

from __future__ import annotations

from kerf.ports import AlreadyGone
from kerf.sandbox.api.api_server import ApiServer, Key, Record, owners


class GarbageCollector:
    """Follows owner references by UID."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._living: set[str] = set()
        self._dependents: dict[str, dict[tuple[str, Key], None]] = {}
        self._suspects: dict[tuple[str, Key], None] = {}
        server.listen(self._heard)

    def _heard(self, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None:
            return
        place, uid = (record.kind.name, record.key), record.manifest["metadata"]["uid"]
        if new is None:
            self._living.discard(uid)
            self._suspects |= self._dependents.pop(uid, {})
            for owner in owners(record):
                self._dependents.get(owner, {}).pop(place, None)
            return
        self._living.add(uid)
        if old is None or list(owners(old)) != list(owners(new)):
            for owner in owners(new):
                self._dependents.setdefault(owner, {})[place] = None
                if owner not in self._living:
                    self._suspects[place] = None

    def settle(self) -> bool:
        suspects, self._suspects = list(self._suspects), {}
        for name, key in suspects:
            kind = self._server.kinds[name]
            record = self._server.find(kind, *key)
            uids = list(owners(record)) if record is not None else []
            if record is None or not uids or any(uid in self._living for uid in uids):
                continue
            try:
                self._server.delete(kind, *key, uid=record.manifest["metadata"]["uid"])
            except AlreadyGone:
                continue
        return bool(suspects)
