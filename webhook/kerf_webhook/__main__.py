"""`python -m kerf_webhook --bind 0.0.0.0:8443 --cert-file tls.crt --key-file tls.key`."""

from __future__ import annotations

import sys

from .server import main

sys.exit(main())
