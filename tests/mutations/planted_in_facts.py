"""The planted bugs of facts from outside that change: versions, prices, and addresses to listen on."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_OF_FORCEFUL, _OF_LEADER = "tests/unit/disruption/test_forceful.py", "tests/unit/runtime/test_leader.py"
_OF_VERSIONS, _OF_UPGRADE, _OF_READING = (
    f"tests/unit/runtime/test_{name}.py" for name in ("versions", "upgrade", "reading_prices")
)
_OF_PRICES, _OF_SOCKETS = "tests/unit/ec2/test_prices.py", "tests/unit/test_sockets.py"


def _bug(name: str, breaks: str, place: str, old: str, new: str, test: str) -> Bug:
    return Bug(name, breaks, (Edit(place, old, new),), (test,))


BUGS = (
    _bug(
        "taken over at once",
        "Every node that Karpenter left past its life goes in the minute in which Kerf takes over.",
        "reconciler/kerf/disruption:_latest",
        "since + PACED_FOR",
        "since",
        f"{_OF_FORCEFUL}::test_such_a_claim_is_deleted_when_the_day_is_over_and_due_then",
    ),
    _bug(
        "taken over with jitter",
        "Nodes of Karpenter's go days before their life is over.",
        "reconciler/kerf/disruption:end_of",
        "not launched_by_kerf(claim)",
        "False",
        f"{_OF_FORCEFUL}::test_a_claim_that_was_taken_over_goes_when_its_life_is_over_and_not_before",
    ),
    _bug(
        "transition not counted",
        "Karpenter led for a month in between, and Kerf believes that it did itself.",
        "reconciler/kerf/runtime:leading_since",
        "transitions != str(lease.transitions)",
        "not transitions",
        f"{_OF_LEADER}::test_another_controller_in_between_ends_it",
    ),
    _bug(
        "other lease not counted",
        "Karpenter led by a lease of its own, and Kerf believes that it did itself.",
        "reconciler/kerf/runtime:Leading.since",
        "max(since, self._karpenter.last_led())",
        "since",
        "tests/unit/runtime/test_leading.py::test_another_process_knows_when_karpenter_led_last",
    ),
    _bug(
        "first answer counts",
        "One API server that is ahead replaces every node.",
        "reconciler/kerf/runtime:KubernetesVersion.answered",
        "at - self._first.at >= CONFIRMED_AFTER and (not (kept and _is_lower(version, self.counted)))",
        "not (kept and _is_lower(version, self.counted))",
        f"{_OF_UPGRADE}::test_one_answer_of_a_server_that_is_ahead_moves_no_node",
    ),
    _bug(
        "version goes down",
        "API servers that are behind replace every node twice.",
        "reconciler/kerf/runtime:KubernetesVersion.answered",
        "at - self._first.at >= CONFIRMED_AFTER and (not (kept and _is_lower(version, self.counted)))",
        "at - self._first.at >= CONFIRMED_AFTER",
        f"{_OF_UPGRADE}::test_a_server_that_is_behind_moves_no_node_back",
    ),
    _bug(
        "any version on the lease",
        "A lease makes replicas look for images of a version that is not there.",
        "reconciler/kerf/runtime:KubernetesVersion._take_noted",
        "number is not None and number == _next(self.counted)",
        "self.counted",
        f"{_OF_VERSIONS}::test_another_replica_takes_the_next_version_from_the_leader",
    ),
    _bug(
        "classes keep their images",
        "A new version counts, and nobody asks for its images before the next refresh.",
        "reconciler/kerf/runtime:State._",
        "if self.known_cluster.take(news):\n    self.catalogues.look_again()",
        "self.known_cluster.take(news)",
        f"{_OF_UPGRADE}::test_nodes_drift_to_images_of_the_next_version_under_budgets",
    ),
    _bug(
        "prices not awaited",
        "The first pods are placed by estimates.",
        "reconciler/kerf/runtime:Catalogues._renew_region",
        "self._types is None or self._awaited",
        "self._types is None",
        f"{_OF_READING}::test_nothing_is_known_of_types_before_their_prices_are_read_or_have_failed",
    ),
    _bug(
        "estimates in dollars",
        "A type without a known price looks seven times as cheap in China.",
        "reconciler/kerf/ec2:priced",
        "round(guessed.get(name, 0) * level)",
        "guessed.get(name, 0)",
        f"{_OF_PRICES}::test_a_missing_price_is_estimated_at_the_level_of_the_known_ones",
    ),
    _bug(
        "level by the mean",
        "One price that is far off moves all estimates.",
        "reconciler/kerf/ec2:_median",
        "ordered = sorted(values)\nreturn ordered[len(ordered) // 2]",
        "found = list(values)\nreturn sum(found, Fraction(0)) / len(found)",
        f"{_OF_PRICES}::test_one_price_that_is_far_off_does_not_move_the_level",
    ),
    _bug(
        "IPv6 alone",
        "A socket for all addresses refuses IPv4.",
        "reconciler:listening",
        "True",
        "False",
        f"{_OF_SOCKETS}::test_all_addresses_are_those_of_both_families",
    ),
    _bug(
        "no IPv6 no listener",
        "A kernel without IPv6 gets no listener at all.",
        "reconciler:listening",
        "if error.errno not in _NO_IPV6:\n    raise",
        "raise",
        f"{_OF_SOCKETS}::test_an_address_that_is_switched_off_is_left_out",
    ),
    Bug(
        "a silent kubelet is no trouble",
        "kerf status reports that all is well while a node has been unhealthy for hours.",
        (
            Edit(
                "reconciler/kerf/judgement:unhealthy",
                "now >= (sickness.until if repaired else sickness.since + JOINS_WITHIN)",
                "repaired",
            ),
        ),
        ("tests/unit/judgement/test_unhealthy.py::test_a_silent_kubelet_is_a_trouble_with_what_a_person_can_do",),
    ),
)
