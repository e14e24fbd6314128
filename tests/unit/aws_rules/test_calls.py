"""A call that AWS refuses fails the test that sent it, unless the test expects it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.aws_calls import record
from tests.aws_calls.ledger import Account, Ledger
from tests.sources import ROOT

INNER = """
from contextlib import suppress
from dataclasses import replace

import boto3
import pytest
from botocore.exceptions import ClientError

from kerf_api.v1.nodeclaim import NodeClaim
from kerf.ports import Invalid
from kerf.sandbox.world import World

EC2 = boto3.client("ec2", region_name="us-west-2", aws_access_key_id="a", aws_secret_access_key="b",
                   endpoint_url="http://127.0.0.1:9")


def end() -> None:
    with pytest.raises(ClientError, match="InvalidInstanceID.Malformed"):
        EC2.terminate_instances(InstanceIds=["i-1"])


def test_client():
    end()


@pytest.mark.refused("instance_id_form")
def test_expected():
    end()


@pytest.mark.refused("instance_id_form")
def test_expected_and_missed():
    pass


def test_sandbox():
    with pytest.raises(Invalid, match="reserved prefix"):
        World().cloud.tag("i-0123456789abcdef0", {"aws:a": "b"})


def test_sandbox_that_hides_it():
    with suppress(Invalid):
        World().cloud.ensure_instance_profile("a/b", "role", "/a/", {})


def test_valid():
    World().cloud.instances()


@pytest.fixture
def wrong():
    end()


def test_fixture(wrong):
    pass
"""


def test_a_refused_call_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(INNER)
    main = "import sys, pytest; from tests.aws_calls.plugin import AwsCalls; "
    main += "sys.exit(pytest.main(sys.argv[1:], plugins=[AwsCalls()]))"
    folder = str(tmp_path)
    command = [sys.executable, "-c", main, folder, "-n0", "-p", "no:cacheprovider", "-rA", "--rootdir", folder]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    outcomes = {
        line.split("::")[1].split(" ")[0]: line.split(" ")[0]
        for line in run.stdout.splitlines()
        if line.startswith(("PASSED", "FAILED", "ERROR")) and "::" in line
    }
    assert outcomes == {
        "test_client": "FAILED",
        "test_expected": "PASSED",
        "test_expected_and_missed": "FAILED",
        "test_sandbox": "FAILED",
        "test_sandbox_that_hides_it": "FAILED",
        "test_valid": "PASSED",
        "test_fixture": "FAILED",
    }, run.stdout + run.stderr
    assert "AWS refused no call by rule instance_id_form" in run.stdout
    assert "calls of AWS judged (clients 3, sandbox " in run.stdout


@pytest.mark.parametrize(
    ("operation", "parameters", "refused"),
    [
        ("TerminateInstances", {"InstanceIds": ["i-0123456789abcdef0"]}, False),
        ("TerminateInstances", {"InstanceIds": []}, True),
        ("TerminateInstances", {}, True),
    ],
)
def test_the_ledger_counts_calls_rules_and_refusals(
    operation: str, parameters: dict[str, object], refused: bool
) -> None:
    ledger = Ledger()
    assert (ledger.judge("clients", "ec2", operation, parameters) is not None) == refused
    ledger.repeat("sandbox", 4)
    account = ledger.take()
    assert account.calls == {"clients": 1, "sandbox": 4}
    assert account.rules == {"instance_id_form": 1, "terminated_instances": 1}
    assert bool(account.refusals) == refused
    assert ledger.take() == Account()


def test_the_numbers_of_several_runs_are_added(tmp_path: Path) -> None:
    one = Account({"clients": 1000, "sandbox": 2}, {"a": 3}, [], 1)
    record.write(tmp_path / "runs", one)
    found = record.total([*record.read(tmp_path / "runs"), Account({"sandbox": 1}, {"b": 1}, [], 0)])
    assert record.line(found, 5) == (
        "1,003 calls of AWS judged (clients 1,000, sandbox 3) by the service models and by 2 of 5 rules; "
        "refused: 0, 1 more as tests expect"
    )
