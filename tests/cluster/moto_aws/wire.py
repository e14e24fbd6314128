"""Writes EC2's XML from plain data, by botocore's own description of the shapes.

moto's serialiser takes two seconds for all instance types, and does not page. This one serves the long lists: types,
offerings, spot prices and instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

import botocore.session

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


@cache
def _operation(name: str) -> Any:
    return botocore.session.get_session().get_service_model("ec2").operation_model(name)


def page(operation: str, key: str, rows: Sequence[Mapping[str, Any]], token: str | None, size: int) -> str:
    """One page of `rows` as the operation's answer; the token is the position at which the page starts."""
    start = int(token or 0)
    result: dict[str, Any] = {key: rows[start : start + size]}
    if start + size < len(rows):
        result["NextToken"] = str(start + size)
    body = "".join(_members(_operation(operation).output_shape, result))
    return f'<{operation}Response xmlns="{NAMESPACE}"><requestId>kerf</requestId>{body}</{operation}Response>'


def page_of(response: Any, operation: str, key: str, rows: Sequence[Mapping[str, Any]], most: int) -> str:
    """The page that a request (one of moto's response objects) asks for, of at most `most` rows."""
    size = min(int(response._get_param("MaxResults") or most), most)
    return page(operation, key, rows, response._get_param("NextToken"), size)


@cache
def _layout(shape: Any) -> tuple[tuple[str, str, Any], ...]:
    """(member, element, shape) of a structure's members; botocore works each of them out anew."""
    return tuple((name, one.serialization.get("name", name), one) for name, one in shape.members.items())


@cache
def _item(shape: Any) -> tuple[str, Any]:
    """(element, shape) of a list's items."""
    return shape.member.serialization.get("name", "member"), shape.member


def _members(shape: Any, value: Mapping[str, Any]) -> list[str]:
    return [_element(member, element, value[name]) for name, element, member in _layout(shape) if name in value]


def _element(shape: Any, name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"<{name}>{''.join(_members(shape, value))}</{name}>"
    if isinstance(value, list):
        item, member = _item(shape)
        return f"<{name}>{''.join([_element(member, item, one) for one in value])}</{name}>"
    if isinstance(value, bool):
        return f"<{name}>{str(value).lower()}</{name}>"
    return f"<{name}>{escape(str(value))}</{name}>"
