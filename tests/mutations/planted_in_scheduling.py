"""The planted bugs of places for pods: scheduling, and what provisioning makes of it."""

from __future__ import annotations

from tests.mutations.bug import Bug, rule
from tests.mutations.edits import Edit

BUGS = (
    Bug(
        "machines that EC2 has given already are not reckoned with",
        "A claim whose offerings are out of stock by now loses its pods to a second node, though its machine comes.",
        (
            Edit(
                "reconciler/kerf/scheduling:_asked_for",
                "bool(group)",
                "False",
            ),
        ),
        (
            "tests/unit/scheduling/test_solve.py::"
            "test_a_claim_that_may_have_its_machine_takes_its_pods_whatever_is_out_of_stock_since",
        ),
    ),
    Bug(
        "terms over an older name of a label are others",
        "Pods that an older name of the zone keeps apart are planned on one node.",
        (
            Edit(
                "reconciler/kerf/model:PodAffinityTerm.label",
                "labels.normalise(self.topology_key)",
                "self.topology_key",
            ),
        ),
        ("tests/unit/scheduling/test_topology_rules.py::test_pods_are_kept_apart_by_whichever_name_of_the_zone",),
    ),
    Bug(
        "limits checked against nodes instead of claims",
        "Claims that have no Node yet do not count against their pool's limits.",
        (
            Edit(
                "reconciler/kerf/scheduling:_usage",
                "state.pool_name == pool.name and (not state.deleting)",
                "state.pool_name == pool.name and (not state.deleting) and (state.node is not None)",
            ),
        ),
        (rule("test_limits_count_claims_that_have_no_node_yet"),),
        seeds=range(145, 146),
    ),
    Bug(
        "start-up taints hide domains",
        "Pods on a node that starts do not count for a spread that honours taints: one more node is made beside it.",
        (
            Edit(
                "reconciler/kerf/scheduling:_Admission.__call__",
                "self._coming.get(node.name, node.spec.taints)",
                "node.spec.taints",
            ),
        ),
        ("tests/unit/scheduling/test_catalogue_nodes.py::test_what_a_node_starts_with_hides_no_domain",),
    ),
    Bug(
        "names that differ each time",
        "A creation that is repeated makes a second claim instead of meeting the first.",
        (
            Edit(
                "reconciler/kerf/scheduling:claim_name",
                "purpose = '\\n'.join([salt, node.pool, *sorted(_uids(snapshot, node))])",
                (
                    "once = snapshot.now.isoformat()\n"
                    "purpose = '\\n'.join([once, salt, node.pool, *sorted(_uids(snapshot, node))])"
                ),
            ),
        ),
        (rule("test_a_creation_whose_answer_was_lost_meets_its_own_name"),),
    ),
    Bug(
        "volumes that are attached already are forgotten",
        "A node that can attach no more volumes is taken for one that can.",
        (
            Edit(
                "reconciler/kerf/scheduling:VolumeSlots._free",
                "limit - self._attached.counts[driver]",
                "limit.copy()",
            ),
        ),
        ("tests/simulation/test_full_of_volumes.py::test_a_pod_that_comes_later_is_not_sent_to_a_full_node",),
    ),
    Bug(
        "claims of devices overlooked",
        "A pod that claims devices in an init container only is placed as if it claimed nothing.",
        (
            Edit(
                "reconciler/kerf/model:claims_devices",
                "(pod.spec.containers, pod.spec.init_containers)",
                "(pod.spec.containers,)",
            ),
        ),
        ("tests/unit/scheduling/test_catalogue_devices.py::test_222_pods_that_claim_devices_are_refused",),
    ),
    Bug(
        "a device for several",
        "A device that allows one allocation is given to every claim that asks.",
        (
            Edit(
                "reconciler/kerf/scheduling:Usage.admits",
                "if not device.spec.allow_multiple_allocations:\n    return False",
                "",
            ),
        ),
        ("tests/unit/scheduling/test_catalogue_devices_allocated.py::test_224_a_device_is_had_once",),
    ),
    Bug(
        "spread by somebody else's service",
        "Default spread constraints count whom any Service of the namespace selects.",
        (
            Edit(
                "reconciler/kerf/pods:DefaultSpread._selector",
                "all((own.get(key) == value for key, value in selector.items()))",
                "selector",
            ),
        ),
        ("tests/unit/scheduling/test_default_spread.py::test_a_pod_that_belongs_to_nothing_known_is_left_as_it_is",),
    ),
    Bug(
        "what is under way is forgotten",
        "While the creation of a static pool's member is under way, another one is created in its place.",
        (
            Edit(
                "reconciler/kerf/provisioning:_filled",
                "missing - len(asked)",
                "missing",
            ),
        ),
        (
            "tests/unit/provisioning/test_static.py"
            "::test_what_is_being_created_counts_whatever_becomes_of_the_others_meanwhile",
        ),
    ),
    Bug(
        "room before pods",
        "Room that CapacityBuffers keep is found before pods that exist have a place.",
        (
            Edit(
                "reconciler/kerf/scheduling:_queue",
                "(False, True)",
                "(True, False)",
            ),
        ),
        ("tests/unit/scheduling/test_buffers.py::test_real_pods_take_what_room_there_is_and_virtual_ones_make_way",),
    ),
    Bug(
        "pods tried in vain count",
        "A pod for which limits leave no node counts in the zone where it was tried, and others keep away from it.",
        (Edit("reconciler/kerf/scheduling:Opening.withdraw", "self._reckon(way, -number)", ""),),
        ("tests/unit/scheduling/test_leftovers.py::test_a_spread_is_kept_and_what_was_tried_in_vain_counts_nowhere",),
    ),
    Bug(
        "limits forgotten by a larger node",
        "A planned node that becomes a larger one counts with the smaller one's cores, and the limit is exceeded.",
        (
            Edit(
                "reconciler/kerf/scheduling:_Table._closed",
                "closed, _ = close(template, [draft], self._most_types, frugal=frugal)",
                (
                    "before = dict(template.remaining) if template.remaining is not None else None\n"
                    "closed, _ = close(template, [draft], self._most_types, frugal=frugal)\n"
                    "template.remaining = before"
                ),
            ),
        ),
        ("tests/unit/scheduling/test_leftovers.py::test_a_larger_node_gives_back_what_the_smaller_one_had_of_limits",),
    ),
    Bug(
        "large nodes stay whole",
        "Few nodes are made fewer, and never more, whatever two smaller ones would cost.",
        (
            Edit(
                "reconciler/kerf/scheduling:_better",
                "(*_taken_over(bins, costs), *_emptied(bins, costs), *_moved(bins, costs), *_parted(bins, costs))",
                "(*_taken_over(bins, costs), *_emptied(bins, costs), *_moved(bins, costs))",
            ),
        ),
        ("tests/laws/test_capacity_laws.py::test_a_node_that_costs_more_than_two_smaller_ones_becomes_these",),
    ),
    Bug(
        "nodes alike that are not",
        "Nodes are told apart by a label's present name only, so one with the old name counts like any other.",
        (
            Edit(
                "reconciler/kerf/pods:asked_labels",
                "keys | {old for old, new in labels.ALIASES.items() if new in keys}",
                "keys",
            ),
        ),
        ("tests/unit/scheduling/test_tallies.py::test_each_label_that_is_asked_for_tells_nodes_apart",),
    ),
    Bug(
        "a single domain has a rival",
        "A spread over a label with one value refuses pods beside planned nodes that it may not count.",
        (
            Edit(
                "reconciler/kerf/scheduling:current",
                "(group.unsure or group.to_come) and len(domains) > 1",
                "group.unsure or group.to_come",
            ),
        ),
        ("tests/unit/scheduling/test_planned_counting.py::test_the_only_domain_is_as_empty_as_it_is_full",),
    ),
    Bug(
        "spreads alike that are not",
        "Spreads share their domains whatever nodes their pods ask for, and whatever taints these tolerate.",
        (
            Edit(
                "reconciler/kerf/scheduling:Topology._spread_group",
                "(constraint.label, affinity, taints, marks, keys)",
                "(constraint.label, affinity, taints, keys)",
            ),
            Edit(
                "reconciler/kerf/scheduling:Topology._spread_group",
                "(SPREAD, place, selector, *alike)",
                "(SPREAD, place, selector, marks, *alike)",
            ),
        ),
        ("tests/laws/test_shared_domains_laws.py::test_spreads_that_share_domains_count_as_if_each_had_its_own",),
    ),
    Bug(
        "spreads alike whatever their policy",
        "Spreads share their domains although one counts tainted nodes and the other does not.",
        (
            Edit(
                "reconciler/kerf/scheduling:Topology._spread_group",
                "(constraint.label, affinity, taints, marks, keys)",
                "(constraint.label, affinity, marks, keys)",
            ),
            Edit(
                "reconciler/kerf/scheduling:Topology._spread_group",
                "(SPREAD, place, selector, *alike)",
                "(SPREAD, place, selector, taints, *alike)",
            ),
        ),
        ("tests/laws/test_shared_domains_laws.py::test_spreads_that_share_domains_count_as_if_each_had_its_own",),
    ),
    Bug(
        "a host with more pods than a spread allows",
        "Pods that a spread over hostnames counts and does not bind join a node that has as many as it allows.",
        (Edit("reconciler/kerf/scheduling:host_limits", "constraint.max_skew", "MANY"),),
        (
            "tests/unit/scheduling/test_spread.py::test_a_host_has_no_more_pods_than_a_spread_allows_whichever_are_bound_first",
        ),
    ),
    Bug(
        "a soft spread that limits others",
        "Pods with a soft spread over hostnames keep others away from their host.",
        (Edit("reconciler/kerf/scheduling:host_limits", "constraint.group in hard", "True"),),
        ("tests/unit/scheduling/test_spread.py::test_pods_of_a_soft_spread_limit_no_others_on_their_host",),
    ),
    Bug(
        "pods that wait for themselves",
        "A pod that is planned in a zone counts as company for its affinity over hostnames.",
        (
            Edit(
                "reconciler/kerf/scheduling:founded_on_nodes",
                "bool(constraint.group.counts) or constraint.group in seated",
                "any((group.counts or group in seated for group in constraint.together or (constraint.group,)))",
            ),
        ),
        (
            "tests/unit/scheduling/test_topology_rules.py::"
            "test_the_first_pods_that_meet_terms_over_hosts_and_zones_need_no_company",
        ),
    ),
    Bug(
        "late nodes without their daemon pods",
        "The DaemonSet pods of a node for late pods are not held against the spread of these.",
        (
            Edit(
                "reconciler/kerf/scheduling:LateNodes.admits",
                "all((_admitted(item, constraint) for constraint in item.cls.relaxations[-1].spreads))",
                "True",
            ),
        ),
        ("tests/unit/scheduling/test_daemon_company.py::test_a_pod_whose_own_node_would_break_its_spread_waits",),
    ),
)
