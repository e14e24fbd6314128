"""As much of the `aws` command as the guides use, in real calls of an SDK; what it does not know it refuses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import boto3


def pairs(words: list[str]) -> dict[str, str]:
    """`Name=value` words as a map."""
    return dict(word.split("=", 1) for word in words)


def deploy(cloudformation: Any, given: argparse.Namespace) -> None:
    parameters = [{"ParameterKey": k, "ParameterValue": v} for k, v in pairs(given.parameter_overrides).items()]
    template = Path(given.template_file).read_text(encoding="utf-8")
    cloudformation.create_stack(
        StackName=given.stack_name, TemplateBody=template, Parameters=parameters, Capabilities=given.capabilities
    )
    (stack,) = cloudformation.describe_stacks(StackName=given.stack_name)["Stacks"]
    if stack["StackStatus"] != "CREATE_COMPLETE":
        raise SystemExit(f"the stack is {stack['StackStatus']}")


def tag(ec2: Any, given: argparse.Namespace) -> None:
    rows = [pairs(text.split(",")) for text in given.tags]
    ec2.create_tags(Resources=given.resources, Tags=rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="aws")
    services = parser.add_subparsers(dest="service", required=True)
    stacks = services.add_parser("cloudformation").add_subparsers(dest="command", required=True)
    made = stacks.add_parser("deploy")
    for flag in ("--stack-name", "--template-file"):
        made.add_argument(flag, required=True)
    made.add_argument("--capabilities", nargs="+", required=True)
    made.add_argument("--parameter-overrides", nargs="+", default=[])
    stacks.add_parser("delete-stack").add_argument("--stack-name", required=True)
    tags = services.add_parser("ec2").add_subparsers(dest="command", required=True).add_parser("create-tags")
    tags.add_argument("--tags", nargs="+", required=True)
    tags.add_argument("--resources", nargs="+", required=True)
    given = parser.parse_args()
    client = boto3.client(given.service)
    match given.command:
        case "deploy":
            deploy(client, given)
        case "delete-stack":
            client.delete_stack(StackName=given.stack_name)
        case "create-tags":
            tag(client, given)


if __name__ == "__main__":
    main()
