"""Objects that changed since the slow half was last asked."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.model.kinds import Ref


class Changes(dict[Ref, Any | None]):
    """By address the object as it is now, None for one that is gone. Who gets them checks whether it was deleted."""

    #: Whether one differs in more than its version: a heartbeat gives a Node a new version every few minutes.
    different = False

    def note(self, ref: Ref, changed: Any | None, old: Any | None, new: Any | None) -> None:
        """`changed` is the object as the server has it; `old` and `new` are None for objects of other controllers."""
        self[ref] = changed
        self.different = self.different or old is None or new is None or old != _at_version_of(old, new)

    def clear(self) -> None:
        super().clear()
        self.different = False


def _at_version_of(old: Any, new: Any) -> Any:
    return replace(new, metadata=replace(new.metadata, resource_version=old.metadata.resource_version))
