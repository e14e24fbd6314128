"""Encryptions of a record in a bucket: the start and the chart's schema accept and refuse the same values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerf.runtime.settings import settings
from kerf.runtime.settings.settings import SettingsError

_KEY = "0123abcd-0123-0123-0123-0123456789ab"
ENCRYPTIONS = [
    "AES256",
    "none",
    "aws:kms",
    "aws:kms:dsse",
    _KEY,
    "mrk-0123456789abcdef0123456789abcdef",
    "alias/my/records",
    f"arn:aws:kms:us-west-2:123456789012:key/{_KEY}",
    "arn:aws-cn:kms:cn-north-1:123456789012:alias/records",
]
NO_ENCRYPTIONS = [
    "",
    "aes256",
    "AES-256",
    "true",
    "kms",
    "aws:kms:",
    "records",
    "key/1",
    "alias/",
    f"{_KEY} ",
    "arn:aws:s3:::records",
]


def _accepted_by_the_chart(value: str) -> bool:
    schema = json.loads(Path("charts/kerf/values.schema.json").read_text(encoding="utf-8"))
    [field] = [one["recordEncryption"] for one in _objects(schema) if "recordEncryption" in one]
    return bool(re.search(field["pattern"], value))


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for one in node.values():
            yield from _objects(one)


@pytest.mark.parametrize("value", ENCRYPTIONS)
def test_an_encryption_of_s3_is_accepted(value: str) -> None:
    assert settings.parse([f"--record-encryption={value}"], {"CLUSTER_NAME": "demo"}).record_encryption == value
    assert _accepted_by_the_chart(value)


@pytest.mark.parametrize("value", NO_ENCRYPTIONS)
def test_another_encryption_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings.parse([f"--record-encryption={value}"], {"CLUSTER_NAME": "demo"})
    [problem] = raised.value.problems
    assert problem.startswith("--record-encryption: must be AES256, aws:kms, aws:kms:dsse, the ID")
    assert not _accepted_by_the_chart(value)
