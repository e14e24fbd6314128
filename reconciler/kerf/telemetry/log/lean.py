"""structlog without rich.

structlog imports rich if it is installed, for coloured tracebacks on consoles: 80 modules, 4 MiB. Kerf writes lines of
JSON only. The name of rich is taken for the time of the import alone: programs that draw tables import it afterwards.
"""

from __future__ import annotations

import sys

_ABSENT = "rich" not in sys.modules
if _ABSENT:
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it fails as if it were not installed
try:
    import structlog as structlog
finally:
    if _ABSENT:
        del sys.modules["rich"]
