"""The CEL engine (`cel`), without its command line.

Importing `cel` imports its command line, too, and with that a terminal toolkit: a quarter of a second of CPU and ten
MiB in each process, for a program that Kerf never starts. `from kerf_api.cel_library import cel` leaves it out.
"""

from __future__ import annotations

import sys
from types import ModuleType

_COMMAND_LINE = "cel.cli"

if _COMMAND_LINE in sys.modules:
    import cel as cel
else:
    sys.modules[_COMMAND_LINE] = ModuleType(_COMMAND_LINE)
    try:
        import cel as cel
    finally:
        del sys.modules[_COMMAND_LINE]
