"""Many plans joined say what they say one after the other, whatever they are grouped by."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kerf.model.aws.accounts import Accounts
from kerf.model.gauges import PlanGauge
from kerf.model.plan import NOTHING, Plan, Purchase, Reason, Refusal, joined

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = st.sampled_from(["a", "b", "c"])
TIMES = st.integers(0, 3).map(lambda seconds: NOW + timedelta(seconds=seconds))
REFUSALS = st.lists(NAMES.map(lambda name: Refusal(f"node/{name}", Reason("Why"))), max_size=2).map(tuple)
#: Most plans say next to nothing.
PLANS = st.just(NOTHING) | st.builds(
    Plan,
    refusals=REFUSALS,
    next_due=st.none() | TIMES,
    provisioned=st.booleans(),
    buffer_pods=st.dictionaries(NAMES, st.integers(1, 3), max_size=1),
    unread_since=st.dictionaries(NAMES, TIMES, max_size=1),
    left_over=st.frozensets(NAMES, max_size=2),
    had_turn=st.frozensets(NAMES, max_size=2),
    candidates_left_over=st.frozensets(st.tuples(NAMES, NAMES), max_size=1),
    gauges=st.dictionaries(st.tuples(st.sampled_from(list(PlanGauge)), st.just(())), st.floats(0, 9), max_size=1),
    accounts=st.none() | st.just(Accounts()),
    purchase=st.none() | st.builds(Purchase, st.integers(1, 3), st.just(1), st.just(1), st.none()),
)


@given(st.lists(PLANS, max_size=4), st.lists(PLANS, max_size=4))
def test_joining_is_associative_and_nothing_adds_nothing(some: list[Plan], others: list[Plan]) -> None:
    whole = joined([*some, *others])
    assert whole == joined([joined(some), joined(others)]) == joined([NOTHING, *some, NOTHING, *others])
    assert joined([]) is NOTHING


@given(st.lists(PLANS, min_size=1, max_size=5))
def test_what_each_says_is_in_the_whole(plans: list[Plan]) -> None:
    whole = joined(plans)
    assert whole.refusals == tuple(refusal for plan in plans for refusal in plan.refusals)
    assert whole.next_due == min((plan.next_due for plan in plans if plan.next_due is not None), default=None)
    assert whole.provisioned == any(plan.provisioned for plan in plans)
    assert whole.purchase == next((plan.purchase for plan in plans if plan.purchase is not None), None)
    assert whole.accounts == next((plan.accounts for plan in plans if plan.accounts is not None), None)
    for name in ("left_over", "had_turn", "candidates_left_over"):
        assert getattr(whole, name) == {one for plan in plans for one in getattr(plan, name)}
    for name in ("buffer_pods", "unread_since", "gauges"):
        assert getattr(whole, name) == {k: v for plan in plans for k, v in getattr(plan, name).items()}
