"""A rule, the call that it judges, and the problem that it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

#: Pages of the AWS documentation.
API: Final = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_"
GUIDE: Final = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/"
EBS: Final = "https://docs.aws.amazon.com/ebs/latest/userguide/"
#: The day on which all pages were read, also as botocore 1.44 repeats them.
READ: Final = "2026-11-26"
LAUNCHES: Final = ("ec2:CreateLaunchTemplate", "ec2:RunInstances")
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """One call of an operation, such as `CreateFleet` of `ec2`, with its parameters as botocore takes them."""

    service: str
    operation: str
    parameters: Parameters

    @property
    def key(self) -> str:
        return f"{self.service}:{self.operation}"

    @cached_property
    def launch(self) -> Parameters:
        """The launch parameters: the data of a launch template, or those of RunInstances itself."""
        inner = self.parameters.get("LaunchTemplateData")
        return inner if isinstance(inner, Mapping) else self.parameters

    @cached_property
    def interfaces(self) -> Sequence[Parameters]:
        return self.launch.get("NetworkInterfaces") or ()

    @cached_property
    def volumes(self) -> Sequence[Parameters]:
        """The `Ebs` part of every block device mapping."""
        return [one["Ebs"] for one in self.launch.get("BlockDeviceMappings") or () if one.get("Ebs")]

    @cached_property
    def tags(self) -> Sequence[tuple[str, Sequence[Parameters]]]:
        """(resource type, tags) of every list of tags in the call."""
        rows = [*(self.parameters.get("TagSpecifications") or ())]
        if self.launch is not self.parameters:
            rows += self.launch.get("TagSpecifications") or ()
        own = [("", self.parameters["Tags"])] if self.parameters.get("Tags") else []
        return [*own, *((row.get("ResourceType", ""), row.get("Tags") or ()) for row in rows)]

    @cached_property
    def overrides(self) -> Sequence[Parameters]:
        """The overrides of all launch template configs of CreateFleet."""
        configs = self.parameters.get("LaunchTemplateConfigs") or ()
        return [one for config in configs for one in config.get("Overrides") or ()]


@dataclass(frozen=True)
class Problem:
    """A call breaks a rule; `code` is the error code of AWS."""

    call: str
    rule: str
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.call}: {self.code}: {self.text} (rule {self.rule})"


@dataclass(frozen=True)
class Rule:
    """One sentence of the AWS documentation, for some operations."""

    name: str
    text: str
    address: str
    operations: tuple[str, ...]
    code: str
    judge: Callable[[Call], Iterable[str]]

    def problems(self, call: Call) -> Iterator[Problem]:
        for detail in self.judge(call):
            yield Problem(call.key, self.name, self.code, detail)


def rule(
    *operations: str, address: str, code: str = "InvalidParameterValue"
) -> Callable[[Callable[[Call], Iterable[str]]], Rule]:
    """Make a rule of a function that yields one text for each breach; its docstring is the text of the rule."""

    def make(judge: Callable[[Call], Iterable[str]]) -> Rule:
        return Rule(judge.__name__, (judge.__doc__ or "").strip(), address, operations, code, judge)

    return make


def given(parameters: Parameters, *names: str) -> list[str]:
    """Those of the names that the parameters have a value for; 0 and False are values."""
    return [name for name in names if parameters.get(name) not in (None, "", [], ())]


def both(parameters: Parameters, *names: str) -> Iterator[str]:
    """One text when more than one of the names is given."""
    found = given(parameters, *names)
    if len(found) > 1:
        yield f"{' and '.join(found)} exclude each other"


def outside(parameters: Parameters, name: str, low: float, high: float) -> Iterator[str]:
    """One text when a number is outside a range, ends included."""
    value = parameters.get(name)
    if value is not None and not low <= value <= high:
        yield f"{name} is {value}; the range is {low:g} to {high:g}"
