"""The part of pytest: a refused call fails the test that caused it, and a run ends with the numbers of calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.aws_rules import RULES

from . import clients, record, sandbox
from .ledger import LEDGER, Account

MARKER: Final = "refused"
_OUTPUT: Final = "aws_calls"
_TOTAL: Final = pytest.StashKey[list[Account]]()


class AwsCalls:
    """A plugin of pytest."""

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", f"{MARKER}(rule, ...): AWS refuses calls of this test by these rules")
        config.stash[_TOTAL] = []
        clients.install()
        sandbox.install()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            result = yield
        except BaseException:
            problems = self._problems(item)
            if problems:
                item.add_report_section("call", "AWS", "\n".join(problems))
            raise
        self._fail(item, complete=True)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        result = yield
        self._fail(item, complete=False)
        return result

    def _fail(self, item: pytest.Item, *, complete: bool) -> None:
        problems = self._problems(item, complete=complete)
        if problems:
            pytest.fail("\n".join(problems), pytrace=False)

    def _problems(self, item: pytest.Item, *, complete: bool = False) -> list[str]:
        """Refusals since the last look; with `complete` also rules that were expected to refuse and did not."""
        emulation = sys.modules.get("tests.cluster.moto_aws")  # a run that has none need not import it
        for aws in emulation.MotoAws.running() if emulation is not None else ():
            aws.judged()
        marker = item.get_closest_marker(MARKER)
        expected = set(marker.args) if marker is not None else set()
        refusals = LEDGER.take_refusals()
        met = [one for one in refusals if one.rule in expected]
        LEDGER.expect(len(met))
        missed = expected - {one.rule for one in met} if complete else set()
        return [
            *(f"AWS refuses {one}" for one in refusals if one.rule not in expected),
            *(f"AWS refused no call by rule {name}" for name in sorted(missed)),
        ]

    # --- the numbers ------------------------------------------------------------------------------------------------
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        account = LEDGER.take()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = msgspec.json.encode(account).decode()
        else:
            session.config.stash[_TOTAL].append(account)
        if account.refusals:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        text = (getattr(node, "workeroutput", None) or {}).get(_OUTPUT)
        if text:
            node.config.stash[_TOTAL].append(msgspec.json.decode(text, type=Account))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        accounts = config.stash[_TOTAL]
        total = record.total(accounts)
        if total.calls:
            terminalreporter.section("calls of AWS")
            terminalreporter.line(record.line(total, len(RULES)))
            for refusal in total.refusals:
                terminalreporter.line(f"outside of tests: AWS refuses {refusal}")
            if folder := os.environ.get(record.VARIABLE):
                record.write(Path(folder), total)
