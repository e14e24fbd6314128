"""The admission webhook: refuses a wrong NodePool when it is written, in the same words as `kerf validate`.

It is a small Flask app (app.py) that reads AdmissionReviews (review.py), asks `kerf_api.lint` and
`kerf_api.defaulting`, and answers; server.py puts gunicorn and TLS around it, certificate.py keeps the
certificate fresh. It knows nothing of the reconciler: a cluster can run several copies of it, and it holds no state.
"""

from __future__ import annotations

from .app import Settings, create_app

__all__ = ["Settings", "create_app"]
