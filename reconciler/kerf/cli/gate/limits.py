"""Limits of TokenReviews: by client address, and over all addresses.

Only tokens without a kept answer use them. Tokens that were valid within an hour are exempt, so a stranger cannot lock
out the people behind the same proxy.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kerf.cli.gate.recent import Recent
from kerf.kube.transport import Limiter

#: TokenReviews a second, and at once after a pause: of one address, and of all.
PER_ADDRESS: Final = (10.0, 100)
OVER_ALL: Final = (40.0, 200)
#: Addresses with a row of their own; a forgotten one begins with a full bucket.
MOST_ADDRESSES: Final = 4096
_KEPT_SECONDS: Final = 600.0
#: TokenReviews of new tokens at once: a slow authenticator must not occupy the threads that an address gets.
AT_ONCE: Final = 2
#: The part of an IPv6 address that one machine can vary is not counted.
_IPV6_PREFIX: Final = 64


class Crowded(Exception):
    """Too many tokens were sent; the next one may come after `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"{seconds} s")
        self.seconds: Final = seconds


class ReviewLimits:
    """Belongs to any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now: Final = now
        self._free: Final = threading.BoundedSemaphore(AT_ONCE)
        self._all: Final = Limiter(*OVER_ALL, now)
        self._addresses: Final = Recent[str, Limiter](_KEPT_SECONDS, MOST_ADDRESSES, now)

    @contextmanager
    def turn(self, address: str) -> Iterator[None]:
        """A TokenReview of a new token for this address. Raises Crowded."""
        self.take(address)
        if not self._free.acquire(blocking=False):
            raise Crowded(1)
        try:
            yield
        finally:
            self._free.release()

    def take(self, address: str) -> None:
        """Count a TokenReview for this address. Raises Crowded."""
        key = _network(address)
        own = self._addresses.get(key) or Limiter(*PER_ADDRESS, self._now)
        self._addresses.put(key, own)
        for limiter in (own, self._all):
            if wait := limiter.take():
                raise Crowded(math.ceil(wait))


def _network(address: str) -> str:
    """The network of an IPv6 address; any other text as it is."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
