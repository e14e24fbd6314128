"""AL2 and AL2023: the parts that a user's text becomes, in front of the part that makes the node join.

Source: AWS provider reference §5.4.
"""

from __future__ import annotations

from . import mime, node_config
from .mime import Part


def parts(text: str, *, nodeadm: bool) -> list[Part]:
    """A MIME archive's own parts; else one, which is a script, or a NodeConfig where `nodeadm` can read one.

    Raises ValueError for a malformed archive.
    """
    text = text.replace("\r", "")
    if not text.strip():
        return []
    if mime.is_archive(text):
        return mime.split(text)
    return [Part.of(mime.NODE_CONFIG if nodeadm and node_config.is_mapping(text) else mime.SHELL, text)]
