"""How long what a parameter says of an image counts (168)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pytest
from botocore.exceptions import ClientError

from kerf.aws.observe.images import CUSTOM_SECONDS, ImageReader, alias_sources
from kerf.aws.requests.answers import Answers
from kerf_api.v1.ec2nodeclass import SelectorTerm

Answer = TypeVar("Answer")
MINUTE = 60.0
LATEST, PINNED = (SelectorTerm(alias="windows2022@latest"),), (SelectorTerm(alias="al2023@v20251001"),)
OWN = (SelectorTerm(ssm_parameter="/team/image"),)
OVER = "2020-01-01T00:00:00.000Z"


class Account:
    """SSM and EC2, and what hands out their clients: parameters, and by ID until when images are to be used."""

    def __init__(self) -> None:
        self.parameters = dict[str, str]()
        self.images = dict[str, str]()
        self.asked = list[str]()
        self.described = 0
        self.seconds = 0.0

    def get(self, service: str) -> Account:
        assert service in ("ec2", "ssm")
        return self

    def get_parameter(self, **given: Any) -> dict[str, Any]:
        self.asked.append(name := given["Name"])
        if name not in self.parameters:
            raise ClientError({"Error": {"Code": "ParameterNotFound", "Message": name}}, "GetParameter")
        return {"Parameter": {"Value": self.parameters[name]}}

    def get_paginator(self, operation: str) -> Account:
        assert operation == "describe_images"
        return self

    def paginate(self, **given: Any) -> Iterator[dict[str, Any]]:
        self.described += 1
        wanted = next(each["Values"] for each in given["Filters"] if each["Name"] == "image-id")
        rows = [
            {"ImageId": id_, "Name": id_, "Architecture": "x86_64", "CreationDate": "2025", "DeprecationTime": until}
            for id_, until in self.images.items()
            if id_ in wanted
        ]
        yield {"Images": rows}


class Reader:
    """A reader of an account's images, for which the latest ones count as such for an hour."""

    def __init__(self, terms: Sequence[SelectorTerm]) -> None:
        self.account, self._terms = Account(), terms
        self._reader = ImageReader(self.account, Answers(lambda: self.account.seconds), 60 * MINUTE)  # type: ignore[arg-type]
        alias = terms[0].alias
        self._names = [one.path for one in alias_sources(alias, "1.36")] if alias else ["/team/image"]
        self.publish("ami-1")

    def publish(self, id_: str) -> None:
        self.account.parameters.update(dict.fromkeys(self._names, id_))
        self.account.images[id_] = ""

    def read(self, after: float = 0.0) -> set[str]:
        """The images, so many seconds later."""
        self.account.seconds += after
        self.account.asked.clear()
        return {one.id for one in self._reader.read(self._terms, "1.36", _straight).images}


def _straight(key: tuple[str, ...], read: Callable[[], Answer]) -> Answer:
    return read()


@pytest.mark.parametrize(("terms", "seconds"), [(LATEST, 60 * MINUTE), (OWN, CUSTOM_SECONDS)])
def test_168_a_parameter_whose_image_is_sound_is_kept_for_its_time(
    terms: Sequence[SelectorTerm], seconds: float
) -> None:
    reader = Reader(terms)
    reader.read()
    reader.publish("ami-2")
    assert reader.read(after=seconds - 1) == {"ami-1"}
    assert reader.account.asked == []
    assert reader.read(after=1) == {"ami-2"}


@pytest.mark.parametrize("terms", [LATEST, OWN])
def test_168_a_parameter_whose_image_is_deprecated_is_asked_at_once(terms: Sequence[SelectorTerm]) -> None:
    reader = Reader(terms)
    reader.read()
    reader.publish("ami-2")
    reader.account.images["ami-1"] = OVER
    assert reader.read() == {"ami-2"}


@pytest.mark.parametrize("terms", [LATEST, OWN])
def test_168_a_parameter_whose_image_is_gone_is_asked_at_once(terms: Sequence[SelectorTerm]) -> None:
    reader = Reader(terms)
    reader.read()
    reader.publish("ami-2")
    del reader.account.images["ami-1"]
    assert reader.read() == {"ami-2"}


def test_168_as_long_as_it_names_a_deprecated_image_it_is_asked_each_time_and_once() -> None:
    reader = Reader(OWN)
    reader.account.images["ami-1"] = OVER
    for _ in range(2):
        described = reader.account.described
        assert reader.read() == {"ami-1"}
        assert (len(reader.account.asked), reader.account.described - described) == (1, 1)


def test_168_what_a_pinned_version_is_stays_so_when_its_image_is_deprecated() -> None:
    reader = Reader(PINNED)
    reader.read()
    reader.publish("ami-2")
    reader.account.images["ami-1"] = OVER
    assert reader.read(after=1e9) == {"ami-1"}
    assert reader.account.asked == []


def test_168_a_parameter_that_is_not_there_is_asked_for_each_time() -> None:
    reader = Reader(OWN)
    reader.account.parameters.clear()
    assert reader.read() == set()
    reader.publish("ami-2")
    assert reader.read() == {"ami-2"}


def test_168_a_parameter_that_names_no_image_is_asked_for_each_time() -> None:
    reader = Reader(OWN)
    reader.account.parameters["/team/image"] = "to be done"
    assert reader.read() == set()
    reader.publish("ami-2")
    assert reader.read() == {"ami-2"}
