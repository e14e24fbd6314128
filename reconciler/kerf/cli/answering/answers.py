"""What `kerf why` and `kerf plan` answer for programs: the same values that its pages are made of, as JSON.

Names are in camel case, instants in RFC 3339, edits of an account in words and of `patches` as data; money is in
millionths of a dollar per hour.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kerf.cli.answering.records import words_of
from kerf.model.instants import rfc3339
from kerf.scheduling.answers.edits import PodEdit, PoolEdit

if TYPE_CHECKING:
    from kerf.judgement.pools import PoolJudgement
    from kerf.judgement.values import Judgement
    from kerf.planning.forecast import Forecast
    from kerf.provisioning.why import Answer


def as_json(answer: Judgement | Answer | PoolJudgement | Forecast, at: datetime) -> str:
    """One JSON object, with a line break at its end. `at` is the time of the cluster."""
    return _written(_plain(answer), at)


def compared_as_json(found: Mapping[str, Forecast], at: datetime) -> str:
    """The plans of several changes by name, as one JSON object with a line break at its end."""
    return _written({"compared": [{"change": name, **_plain(one)} for name, one in found.items()]}, at)


def _written(content: Mapping[str, Any], at: datetime) -> str:
    return json.dumps({"version": 1, "asOf": words_of(at), **content}, indent=2) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, PodEdit | PoolEdit):
        return str(value)
    if is_dataclass(value):
        return {_camel(field.name): _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
