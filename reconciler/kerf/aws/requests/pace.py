"""How fast we ask EC2: as fast as it allows, and what ends machines before what looks, and that before what makes.

EC2 gives each kind of request of an account a bucket of tokens, which all that run in the account share, and refuses
what finds it empty. Here each kind has the like of that bucket: what would be refused waits for a moment, or is raised
to come again (Throttled), before it is sent. Together they have one more, of which what is less urgent leaves a part to
what is more urgent. Where EC2 refuses all the same, that kind of request alone becomes slower, and recovers by itself.
Source: EC2 developer guide, "Request throttling for the Amazon EC2 API".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import exp2, log2
from typing import Any, Final

from kerf.aws.requests.errors import THROTTLED
from kerf.ports import Throttled

#: No call waits longer than this: who acts must lead still when the request goes out.
PATIENCE_SECONDS: Final = 2.0
#: After a refusal a kind of request has half its pace, at least so much of it, and twice as much after so long.
SLOWEST, RECOVERS_SECONDS = 1 / 16, 30.0


@dataclass(frozen=True, slots=True)
class Family:
    """Kinds of requests that are alike: each has so many tokens, and so many new ones a second.

    `leaves` is the part of the tokens of all that it leaves to those that are more urgent.
    """

    name: str
    burst: float
    per_second: float
    leaves: float


TERMINATE: Final = Family("terminate", 100, 5, 0.0)
DESCRIBE: Final = Family("describe", 100, 20, 0.2)
CREATE: Final = Family("create", 50, 5, 0.4)
#: Only tried, never meant: EC2 counts that all the same.
RUN: Final = Family("run", 5, 2, 0.4)
TAG: Final = Family("tag", 100, 10, 0.4)
TIDY: Final = Family("tidy", 50, 5, 0.6)
#: All requests together.
ALL: Final = Family("all", 200, 50, 0.0)
#: A bucket holds so many tokens at least, however slow: what leaves a part of it to others must find one all the same.
_LEAST, _NEXT_TO_NOTHING = 5.0, 1e-3
_FAMILIES: Final = {
    "TerminateInstances": TERMINATE,
    "RunInstances": RUN,
    "CreateTags": TAG,
    "DeleteLaunchTemplate": TIDY,
}


def family(operation: str) -> Family:
    """Of a request of EC2, such as `DescribeSubnets`."""
    return _FAMILIES.get(operation) or (DESCRIBE if operation.startswith("Describe") else CREATE)


class Bucket:
    """Tokens of one kind of request. Instants are seconds from anywhere, and never go back."""

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self._burst, self._per_second, self._at = burst, per_second, now
        self._level = burst
        self._slowed, self._slowed_at = 1.0, now

    def wait(self, now: float, leaves: float = 0.0) -> float:
        """Seconds until there is a token besides the share that is left to others; 0: there is one."""
        self._fill(now)
        lacking = 1.0 + leaves * self._burst - self._level
        return lacking / (self._per_second * self._pace(now)) if lacking > _NEXT_TO_NOTHING else 0.0

    def take(self, now: float) -> None:
        self._fill(now)
        self._level -= 1.0

    def refused(self, now: float) -> None:
        """EC2 has no token left, and gives fewer than we thought."""
        self._fill(now)
        self._level = min(self._level, 0.0)
        self._slowed, self._slowed_at = max(self._pace(now) / 2, SLOWEST), now

    def _fill(self, now: float) -> None:
        self._level = min(self._level + (now - self._at) * self._per_second * self._pace(now), self._burst)
        self._at = now

    def _pace(self, now: float) -> float:
        """The part of its usual pace that it has now."""
        doublings = min((now - self._slowed_at) / RECOVERS_SECONDS, -log2(SLOWEST))
        return min(self._slowed * exp2(doublings), 1.0)


class Pace:
    """The buckets of one account and region. `rate` is times EC2's usual pace; 0: no call waits. Safe for many threads.

    `held` hears of waits (family, seconds), `refused` of refusals by EC2 (family).
    """

    def __init__(
        self,
        rate: float = 1.0,
        *,
        held: Callable[[str, float], None] = lambda family, seconds: None,
        refused: Callable[[str], None] = lambda family: None,
        elapsed: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._held, self._refused = rate, held, refused
        self._elapsed, self._sleep = elapsed, sleep
        self._lock = threading.Lock()
        self._buckets: dict[str, Bucket] = {}

    def admit(self, operation: str) -> None:
        """Return when a request may go out. Raises Throttled when that would take long."""
        waited = 0.0
        while self._rate and (wait := self._take(operation)):
            if waited + wait > PATIENCE_SECONDS:
                text = f"ec2:{operation}: delayed, because EC2 would throttle it now"
                raise Throttled(text, retry_after_seconds=wait)
            self._held(family(operation).name, wait)
            self._sleep(wait)
            waited += wait

    def throttled(self, operation: str) -> None:
        """EC2 refused such a request."""
        self._refused(family(operation).name)
        if self._rate:
            with self._lock:
                self._bucket(operation, family(operation)).refused(self._elapsed())

    def _take(self, operation: str) -> float:
        """A token of its own kind and one of all, or none and the seconds to wait."""
        of = family(operation)
        with self._lock:
            now = self._elapsed()
            own, common = self._bucket(operation, of), self._bucket("", ALL)
            wait = max(own.wait(now), common.wait(now, of.leaves))
            if not wait:
                own.take(now)
                common.take(now)
            return wait

    def _bucket(self, name: str, of: Family) -> Bucket:
        if name not in self._buckets:
            burst, per_second = max(of.burst * self._rate, _LEAST), of.per_second * self._rate
            self._buckets[name] = Bucket(burst, per_second, self._elapsed())
        return self._buckets[name]

    def install(self, client: Any) -> None:
        """Have an EC2 client of boto3 keep to it: each request, each page of an answer."""

        def before(model: Any, **_: Any) -> None:
            self.admit(model.name)

        def after(operation: Any, response: Any, **_: Any) -> None:
            code = response[1].get("Error", {}).get("Code") if response is not None else None
            if code in THROTTLED:
                self.throttled(operation.name)

        client.meta.events.register("before-call.ec2", before, unique_id="kerf-pace")
        client.meta.events.register_first("needs-retry.ec2", after, unique_id="kerf-pace-refused")
