"""The planted bugs: what a careless change might do to the controller or the converter, as other pieces of source.

A piece must occur exactly once in its file, so that a change of the source that moves it away is noticed at once
(`test_mutations.py`) and the bug is planted anew where it belongs now.
"""

from __future__ import annotations

from tests.mutations import (
    planted_in_aws,
    planted_in_conversion,
    planted_in_disruption,
    planted_in_lifecycle,
    planted_in_runtime,
    planted_in_scheduling,
)

BUGS = (
    *planted_in_lifecycle.BUGS,
    *planted_in_disruption.BUGS,
    *planted_in_scheduling.BUGS,
    *planted_in_runtime.BUGS,
    *planted_in_aws.BUGS,
    *planted_in_conversion.BUGS,
)
