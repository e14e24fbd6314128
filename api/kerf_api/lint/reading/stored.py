"""Manifests as the API server stores them: without null fields and empty texts that stand for a default."""

from __future__ import annotations

from typing import Any, Final

#: Fields in which an empty text is the same as no field. Source: the defaults of the Kubernetes API.
_DEFAULTED: Final = frozenset(
    {"schedulerName", "restartPolicy", "dnsPolicy", "imagePullPolicy", "protocol", "effect", "operator", "namespace"}
)
#: Maps of a user's own names, whose values are texts.
_TEXTS: Final = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})


def stored(value: Any) -> Any:
    """Return a manifest without null fields and empty texts of defaulted fields. Entries of lists stay."""
    if isinstance(value, list):
        return [stored(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _texts(one) if name in _TEXTS else stored(one)
        for name, one in value.items()
        if one is not None and not (one == "" and name in _DEFAULTED)
    }


def _texts(value: Any) -> Any:
    return {name: "" if one is None else one for name, one in value.items()} if isinstance(value, dict) else value
