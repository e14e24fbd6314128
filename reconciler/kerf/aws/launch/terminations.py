"""Ending instances, many with one call.

TerminateInstances does all or nothing: one ID that EC2 does not know, or that may not be ended, keeps the others from
ending. So what an answer finds fault with is asked alone, and the rest again together; when EC2 is too busy, or says
nothing, the call is not repeated. Source: EC2 API reference, TerminateInstances.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from kerf.aws.requests.batches import Batches, Outcomes
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.ports import PortError, Throttled, Unavailable

#: EC2 takes more; so many are what it recommends at most.
MOST: Final = 500
ENDED: Final = frozenset({"shutting-down", "terminated"})
_ID: Final = re.compile(r"\bi-[0-9a-z]+\b")


class Terminations:
    """`ec2` gives the client; safe for many threads."""

    def __init__(self, ec2: Callable[[], Any]) -> None:
        self._ec2 = ec2
        self._batches = Batches(self._end, MOST)

    def end(self, instance_id: str) -> None:
        """End one instance. Raises AlreadyGone when EC2 does not know the ID; Forbidden, Throttled, Unavailable."""
        self._batches.ask(instance_id)

    def _end(self, ids: Sequence[str]) -> Outcomes:
        if len(ids) == 1:
            return {ids[0]: self._alone(ids[0])}
        try:
            left = sorted(set(ids) - self._ended(ids))
        except (Throttled, Unavailable) as error:
            return dict.fromkeys(ids, error)
        except PortError as error:
            left = sorted(set(ids).intersection(_ID.findall(str(error)))) or sorted(ids)
            rest = [id_ for id_ in ids if id_ not in left]
            return {**self._each(left), **(self._end(rest) if rest else {})}
        return {**dict.fromkeys(ids), **self._each(left)}

    def _each(self, ids: Sequence[str]) -> Outcomes:
        return dict(zip(ids, each(self._alone, ids), strict=True))

    def _alone(self, id_: str) -> PortError | None:
        try:
            ended = self._ended([id_])
        except PortError as error:
            return error
        return None if id_ in ended else Unavailable(f"ec2:TerminateInstances: the answer does not terminate {id_}")

    def _ended(self, ids: Sequence[str]) -> set[str]:
        """Those of which EC2 says that they end."""
        with translated("ec2:TerminateInstances"):
            answer = self._ec2().terminate_instances(InstanceIds=list(ids))
        rows = answer.get("TerminatingInstances", ())
        return {row["InstanceId"] for row in rows if row.get("CurrentState", {}).get("Name") in ENDED}
