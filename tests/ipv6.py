"""Whether this machine has IPv6. Its kernel's own files are asked, not a socket: sockets are what tests are about."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SWITCH: Final = Path("/proc/sys/net/ipv6/conf/lo/disable_ipv6")
HAS_IPV6: Final = _SWITCH.exists() and _SWITCH.read_text().strip() == "0"
#: The loopback addresses that a server of all addresses has.
LOOPBACK: Final = ("127.0.0.1", "::1") if HAS_IPV6 else ("127.0.0.1",)
