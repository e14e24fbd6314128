"""Terms of the selectors of an EC2NodeClass that match nothing in any account, although the API server accepts them.

Sources: EC2 user guide, "Resource IDs" and "Tag your resources"; EC2 API reference, CreateSecurityGroup, CreateImage
and DescribeImages; Systems Manager API reference, PutParameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading import placeholders
from kerf_api.lint.reading.reading import entries, mapping

RULE: Final = "KERF-EC2-219"
#: By list of terms, the prefix of its IDs.
_PREFIXES: Final = {
    "amiSelectorTerms": "ami",
    "capacityReservationSelectorTerms": "cr",
    "securityGroupSelectorTerms": "sg",
    "subnetSelectorTerms": "subnet",
}
#: The limits of EC2 for tags, in characters.
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
_SHORTEST_IMAGE, _LONGEST_IMAGE, _LONGEST_GROUP = 3, 128, 255
_OWNER: Final = re.compile(r"\d{12}|self|amazon|aws-marketplace|aws-backup-vault", re.ASCII)
#: Of names, ARNs and what follows them: a version or a label.
_PARAMETER: Final = re.compile(r"[\w.:/-]+", re.ASCII)

_DATED: Final = re.compile(r"\Av\d{8}", re.ASCII)
_NUMBERED: Final = re.compile(r"\Av?\d+\.\d+\.\d+([-+].+)?", re.ASCII)
#: The form of a version by family, and one of them.
_VERSIONS: Final = {
    "al2": (_DATED, "v20250505"),
    "al2023": (_DATED, "v20250505"),
    "bottlerocket": (_NUMBERED, "v1.39.0"),
}


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """A warning for each part of a term because of which the term matches nothing."""
    for field, prefix in _PREFIXES.items():
        for steps, term in entries(manifest, "spec", field):
            yield from _id((*steps, "id"), term.get("id"), prefix)
            yield from _tags((*steps, "tags"), mapping(term, "tags"))
            if prefix == "sg":
                yield from _group_name((*steps, "name"), term.get("name"))
            elif prefix == "ami":
                yield from _image(steps, term)
                yield from _alias((*steps, "alias"), term.get("alias"))


def _id(steps: Steps, value: Any, prefix: str) -> Iterator[Problem]:
    if isinstance(value, str) and value and not re.fullmatch(rf"{prefix}-([0-9a-f]{{8}}|[0-9a-f]{{17}})", value):
        message = f"{shown(value)} matches nothing: IDs of EC2 are {prefix}- and 8 or 17 digits from 0-9a-f"
        yield at(steps, RULE, "warning", message, f"write an ID such as {prefix}-0123456789abcdef0", value)


def _tags(steps: Steps, tags: Mapping[str, Any]) -> Iterator[Problem]:
    for key, value in tags.items():
        if len(str(key)) > _LONGEST_KEY or (isinstance(value, str) and len(value) > _LONGEST_VALUE):
            message = f"matches nothing: a tag of EC2 has {_LONGEST_KEY} characters at most, its value {_LONGEST_VALUE}"
            yield at((*steps, str(key)), RULE, "warning", message, "write the tag as it is in EC2")


def _group_name(steps: Steps, name: Any) -> Iterator[Problem]:
    if not isinstance(name, str):
        return
    if name.lower().startswith("sg-"):
        message = f"{shown(name)} matches nothing: the name of a security group cannot begin with sg-"
        yield at(steps, RULE, "warning", message, "write an ID into id", name)
    elif len(name) > _LONGEST_GROUP:
        message = f"matches nothing: the name of a security group has {_LONGEST_GROUP} characters at most"
        yield at(steps, RULE, "warning", message, "write the name as it is in EC2")


def _image(steps: Steps, term: Mapping[str, Any]) -> Iterator[Problem]:
    name, owner, parameter = term.get("name"), term.get("owner"), term.get("ssmParameter")
    length = len(name) if isinstance(name, str) and not set("*?") & set(name) else 0
    if length and not _SHORTEST_IMAGE <= length <= _LONGEST_IMAGE:
        message = f"matches nothing: the name of an image has {_SHORTEST_IMAGE} to {_LONGEST_IMAGE} characters"
        yield at((*steps, "name"), RULE, "warning", message, "write the name as it is in EC2, or use *")
    if isinstance(owner, str) and owner and not _OWNER.fullmatch(owner):
        message = f"{shown(owner)} matches nothing: it is no owner of images"
        hint = "write an account of 12 digits, self, amazon, aws-marketplace or aws-backup-vault"
        yield at((*steps, "owner"), RULE, "warning", message, hint, owner)
    if isinstance(parameter, str) and parameter and not _PARAMETER.fullmatch(parameter):
        message = f"{shown(parameter)} matches nothing: it is no name of an SSM parameter"
        hint = "names have letters, digits and . - _ / characters"
        yield at((*steps, "ssmParameter"), RULE, "warning", message, hint, parameter)


def _alias(steps: Steps, alias: Any) -> Iterator[Problem]:
    """The version of an alias, as the images of its family are named; one `@` and a known family are other rules."""
    family, _, version = alias.partition("@") if isinstance(alias, str) else ("", "", "")
    form, example = _VERSIONS.get(family, (None, ""))
    if form is None or version in ("", "latest") or "@" in version or placeholders.find(version):
        return
    if not form.fullmatch(version):
        message = f"{shown(alias)} matches nothing: {shown(version)} is no version of {family} images"
        yield at(
            steps, RULE, "warning", message, f"write a version such as {family}@{example}, or {family}@latest", alias
        )
