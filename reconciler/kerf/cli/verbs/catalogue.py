"""`kerf catalogue`: the table of instance types that the linter knows, as AWS describes them today.

The table that ships with the linter was printed by this command. A user who needs advice for another region, or for
types that came later, prints one and gives it to `kerf validate --catalogue`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from kerf.cli.terminal import say
from kerf.ec2 import families
from kerf.ec2.instance_types import type_labels
from kerf.model.aws.cloud import InstanceTypeInfo
from kerf_api import labels

#: Labels that follow from where and how an instance is launched, not from its type.
_OF_LAUNCH: Final = frozenset(
    {labels.INSTANCE_TYPE, labels.ZONE, labels.ZONE_ID, labels.REGION, labels.OS, labels.WINDOWS_BUILD}
    | {f"{labels.AWS_GROUP}/instance-tenancy"}
)


def table(infos: Sequence[InstanceTypeInfo]) -> dict[str, Any]:
    """Names, and for every label one value for each name: a text, a list of texts, or null where it has none."""
    ordered = sorted(infos, key=lambda info: info.name)
    rows = [type_labels.requirements(info, families.of("AL2023"), "", {}) for info in ordered]
    keys = sorted({key for row in rows for key in row} - _OF_LAUNCH)
    columns = {key: [_value(row, key) for row in rows] for key in keys}
    known = {key: column for key, column in columns.items() if any(value is not None for value in column)}
    return {"types": [info.name for info in ordered], "labels": known}


def text(table: Mapping[str, Any]) -> str:
    """As JSON with one label to a line, so that a change can be read."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(column)}" for key, column in table["labels"].items())
    return f'{{"types": {json.dumps(table["types"])},\n"labels": {{\n{lines}\n}}}}\n'


def _value(row: Mapping[str, Any], key: str) -> str | list[str] | None:
    values = sorted(row[key].values) if key in row else []
    return values[0] if len(values) == 1 else values or None


def names() -> str:
    """The names of all instance types in EC2's service model, one to a line: `kerf_api/type_names.txt`."""
    from botocore.loaders import Loader

    shape = Loader().load_service_model("ec2", "service-2")["shapes"]["InstanceType"]
    return "".join(f"{name}\n" for name in sorted(shape["enum"]))


def command(
    region: Annotated[str, typer.Option(help="region whose types are read, such as us-east-1")] = "",
    endpoint_url: Annotated[str, typer.Option(help="another address of EC2, an emulator's for example")] = "",
    only_names: Annotated[
        bool, typer.Option("--names", help="print the names that EC2's service model has, without asking AWS")
    ] = False,
) -> None:
    """Print the table of instance types for `kerf validate --catalogue`. Needs ec2:DescribeInstanceTypes."""
    if only_names:
        typer.echo(names(), nl=False)
        return
    if not region:
        raise typer.BadParameter("give the region whose types are read, such as us-east-1", param_hint="--region")
    from kerf.aws.observe.types import read_types
    from kerf.aws.requests.clients import Clients
    from kerf.ports import PortError

    try:
        infos = read_types(Clients(region, endpoint_url=endpoint_url or None).get("ec2"))
    except PortError as error:
        say(f"the instance types cannot be read: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(text(table(list(infos.values()))), nl=False)
