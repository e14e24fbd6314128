"""The planted bugs of a change of controllers: nodes that Karpenter left drift by it, or the check does not say so."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_TAKEN = "tests/adoption/test_taking_over.py"
_CHECK, _LIVE = "tests/unit/cli/test_migrate.py", "tests/unit/cli/test_migrate_live.py"

BUGS = (
    Bug(
        "adopted claims keep their hash",
        "Claims get the new version with the hash that was made in the old way, and all of them drift.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_rehash",
                "key.endswith('-version') or not drifted",
                "key.endswith('-version')",
            ),
        ),
        (
            f"{_TAKEN}::test_every_field_that_is_written_is_explained_and_no_node_is_touched",
            f"{_TAKEN}::test_what_was_hashed_as_v5_is_stamped_anew_and_not_compared",
            f"{_TAKEN}::test_a_day_goes_by_and_no_node_is_touched",
        ),
    ),
    Bug(
        "adopted class stamped, claims not",
        "A class gets its new hash and its claims stay behind: nobody ever drifts again.",
        (
            Edit(
                "reconciler/kerf/lifecycle:reconcile",
                "lambda: view.claims_of_class(node_class.name)",
                "tuple",
            ),
        ),
        (
            f"{_TAKEN}::test_what_was_hashed_as_v5_is_stamped_anew_and_not_compared",
            f"{_TAKEN}::test_a_change_of_one_class_drifts_its_nodes_and_no_other",
        ),
    ),
    Bug(
        "hashes as Karpenter 1.14 does",
        "The kubelet's settings are left out of the hash under the version that has them in it.",
        (
            Edit(
                "api/kerf_api/v1:nodeclass_hash",
                (
                    "(_class_spec(node_class.spec), _string(node_class.family), _string(ca_bundle), "
                    "_string(_kubelet_text(node_class.spec.kubelet)))"
                ),
                "(_class_spec(node_class.spec), _string(node_class.family), _string(ca_bundle))",
            ),
        ),
        (
            "tests/unit/api/test_hashes.py::test_family_ca_bundle_kubelet_and_order_of_kubelet_keys",
            f"{_TAKEN}::test_v5_hashes_are_as_recorded",
        ),
    ),
    Bug(
        "check passes over drift",
        "Nodes that nobody has marked yet, and that Kerf would replace, are said to be what Karpenter replaces.",
        (
            Edit(
                "reconciler/kerf/cli:_drift",
                "Finding(f'Drifted by {reason}', WRONG, text, 'kerf why node NAME shows the difference')",
                "Finding('Drift', GOOD, text, 'kerf why node NAME shows the difference')",
            ),
        ),
        (
            f"{_CHECK}::test_nodes_that_would_drift",
            f"{_LIVE}::test_a_new_image_would_replace_the_nodes_of_its_class",
        ),
    ),
    Bug(
        "check looks at no pool",
        "What would be consolidated is asked about a cluster without NodePools, and so is nothing.",
        (
            Edit(
                "reconciler/kerf/cli:_consolidation",
                "snapshot.with_node_pools(*map(_unlimited, snapshot.node_pools.values()))",
                "replace(snapshot, node_pools={})",
            ),
        ),
        (f"{_LIVE}::test_nodes_that_would_be_consolidated",),
    ),
    Bug(
        "check trusts a lease nobody sees",
        "A Karpenter without leader election is taken for one that Kerf gives way to.",
        (
            Edit(
                "reconciler/kerf/cli:_lease",
                "own.get('DISABLE_LEADER_ELECTION', '').lower() in ('true', '1', 't')",
                "own.get('DISABLE_LEADER_ELECTION', '') == 'yes'",
            ),
        ),
        (f"{_CHECK}::test_settings_that_kerf_has_otherwise",),
    ),
)
