"""Every call of AWS in every test is judged by the table of AWS's rules (`tests/aws_rules`).

Calls come from three places. Clients of boto3 in the test's process (`clients.py`). Programs of their own, such as the
controller, which talk to the emulated AWS (`tests/cluster/moto_aws`). The sandbox, whose calls are turned into those
that Kerf's AWS layer would send (`sandbox.py`). A call that breaks a rule is answered with the error code of AWS, and
fails the test (`plugin.py`); a test that sends one on purpose says so with `pytest.mark.refused(rule, ...)`.
"""

from __future__ import annotations

from .ledger import LEDGER, Ledger, Refusal

__all__ = ["LEDGER", "Ledger", "Refusal"]
