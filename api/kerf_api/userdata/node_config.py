"""Whether a text is a NodeConfig, the YAML (or JSON) that nodeadm reads on AL2023, and what it says it is.

Only the form counts here: scalars stay texts, tags and merges are not followed. So a few kilobytes of anchors cannot
grow without end, a date that is none is no fault, and what is nested too deep to be built is judged by its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import MappingEndEvent, MappingStartEvent, SequenceEndEvent, SequenceStartEvent

from . import shown

#: Deeper than any NodeConfig, and shallow enough for every recursion.
DEEPEST: Final = 64
_TAGS: Final = "tag:yaml.org,2002:"


@lru_cache(maxsize=256)
def is_mapping(text: str) -> bool:
    """Whether a text is a YAML (or JSON) mapping; a script never is, whatever its lines look like."""
    if text.lstrip().startswith("#!"):
        return False
    try:
        read(text)
    except ValueError:
        return False
    return True


def read(text: str) -> Mapping[Any, Any]:
    """The mapping; an empty one when it is nested too deep. Raises ValueError with what keeps it from being one."""
    try:
        if _is_deep(text):
            return {}
        yaml = YAML(typ="base", pure=True)
        yaml.composer.warn_double_anchors = False
        found = yaml.load(text)
    except YAMLError as error:
        raise ValueError(_words(error)) from error
    if not isinstance(found, Mapping):
        raise ValueError("it is not a map")
    return found


def _is_deep(text: str) -> bool:
    """Whether a mapping is nested too deep. Reads no further than that, since brackets alone can cost seconds.

    Raises ValueError for another thing that is, and for a tag that is not of YAML's own.
    """
    depth, root = 0, ""
    for event in YAML(typ="base", pure=True).parse(text):
        tag = str(getattr(event, "tag", None) or _TAGS)
        if tag != "!" and not tag.startswith(_TAGS):
            raise ValueError(f"the tag {shown(tag)} is none of YAML's own")
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            root, depth = root or type(event).__name__, depth + 1
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            depth -= 1
        if depth > DEEPEST:
            if root != MappingStartEvent.__name__:
                raise ValueError("it is not a map")
            return True
    return False


def _words(error: YAMLError) -> str:
    if not isinstance(error, MarkedYAMLError):
        return "it contains characters that YAML cannot"
    line = f" (line {error.problem_mark.line + 1})" if error.problem_mark is not None else ""
    problem = error.problem or error.context or "it cannot be read"
    if problem.startswith("but "):
        problem = f"{error.context} {problem}"
    return f"{shown(problem)}{line}"
