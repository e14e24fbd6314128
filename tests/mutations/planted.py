"""The planted bugs: what a careless change might do to the controller, as replacements of short pieces of its source.

A piece must occur exactly once in its file, so that a change of the source that moves it away is noticed at once
(`test_mutations.py`) and the bug is planted anew where it belongs now.
"""

from __future__ import annotations

from tests.mutations.bug import Bug, Edit

_EXPECTATIONS = "tests/unit/lifecycle/test_expectations.py"


def _rule(name: str) -> str:
    return f"tests/simulation/test_rules.py::{name}"


BUGS = (
    Bug(
        "no taint before drain",
        "Pods are evicted from a node that takes new ones, so they come back to it and the drain never ends.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    untainted = [(node, tainted) for node in nodes if (tainted := _tainted(node)) != node]\n",
                "    untainted: list[tuple[Node, Node]] = []\n",
            ),
        ),
        (_rule("test_a_node_takes_no_new_pods_while_it_is_drained"),),
        seeds=range(10),
    ),
    Bug(
        "no drain of a node that is not ready",
        "Pods that run on a node of which nobody hears are cut off with it.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    waits = [wait for node in nodes if (wait",
                "    waits = [wait for node in nodes if node.ready and (wait",
            ),
        ),
        (_rule("test_a_node_that_is_not_ready_is_drained_all_the_same"),),
        seeds=range(28, 29),
    ),
    Bug(
        "budget counts only ready nodes",
        "A node that is not ready uses up no budget, so one more goes while it is away already.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "and state.initialized and not claim.is_true(",
                "and state.initialized and state.node.ready and not claim.is_true(",
            ),
        ),
        (_rule("test_a_node_that_is_not_ready_uses_up_budget"),),
    ),
    Bug(
        "deletion that only a plan can keep",
        "A node is deleted for a saving, its pods go where nobody planned them, and one needs such a node again.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "        return _regret(view, candidate, ask) or Move(",
                "        return Move(",
            ),
        ),
        (_rule("test_a_node_stays_when_its_pods_may_need_as_dear_a_node_again"),),
    ),
    Bug(
        "launch without token",
        "A fleet call that is repeated because its answer was lost launches a second time.",
        (Edit("reconciler/aws/fleets.py", '        "ClientToken": request.group,\n', ""),),
        ("tests/contract/test_cloud_fleets.py::test_the_same_request_twice_launches_once[aws]",),
    ),
    Bug(
        "claim written after launch",
        "Between the launch and the write nothing but a tag says whose the instances are.",
        (
            Edit(
                "reconciler/lifecycle/launch.py",
                "        return _write(request, members)\n    if request.kind == fleet.CAPACITY:",
                "        names = tuple(claim.name for claim in members)\n"
                "        call = LaunchInstances(reason=_reason(members[0]), request=request, claims=names)\n"
                "        return joined((act(call), _write(request, members)))\n"
                "    if request.kind == fleet.CAPACITY:",
            ),
        ),
        (_rule("test_a_launch_is_written_to_its_claims_first"),),
        seeds=range(10),
    ),
    Bug(
        "PDB ignored on retry",
        "A pod whose eviction its PodDisruptionBudget refused is deleted instead.",
        (
            Edit(
                "reconciler/runtime/performing.py",
                "    kube.evict(action.ref, uid=action.uid)\n",
                "    from reconciler.ports import EvictionBlocked\n\n"
                "    try:\n"
                "        kube.evict(action.ref, uid=action.uid)\n"
                "    except EvictionBlocked:\n"
                "        kube.delete(action.ref, uid=action.uid)\n",
            ),
        ),
        (_rule("test_an_eviction_that_was_refused_is_asked_again_and_nothing_else"),),
        seeds=range(10),
    ),
    Bug(
        "finalizer removed before the instance is gone",
        "The claim lets go as soon as the termination has been asked for, whether or not it took effect.",
        (
            Edit(
                "reconciler/lifecycle/instance_end.py",
                "    if begun and listed and instance is None:\n",
                "    if begun:\n",
            ),
        ),
        (_rule("test_a_claim_lets_go_when_its_instance_is_gone"),),
        seeds=range(10),
    ),
    Bug(
        "expired watch treated as empty",
        "When a watch's version is too old, everything of its kind counts as gone until it is listed again.",
        (
            Edit(
                "reconciler/runtime/reflector.py",
                "            self._lost(error, relist=True)\n",
                "            self._lost(error, relist=True)\n"
                '            self._inbox.put(Listed(self.kind, (), "", now))\n',
            ),
        ),
        (_rule("test_an_expired_watch_is_listed_again_and_nothing_is_destroyed"),),
    ),
    Bug(
        "forbidden list treated as empty",
        "A list that we may not read counts as a list of nothing.",
        (
            Edit(
                "reconciler/runtime/reflector.py",
                "        listing = self._kube.list(self.kind)\n",
                "        from reconciler.ports import Forbidden, Listing\n\n"
                "        try:\n"
                "            listing = self._kube.list(self.kind)\n"
                "        except Forbidden:\n"
                '            listing = Listing((), "0")\n',
            ),
        ),
        (_rule("test_a_forbidden_list_is_not_an_empty_one"),),
    ),
    Bug(
        "own writes not overlaid",
        "What was written counts only when the watch shows it, so it is decided and written again until then.",
        (
            Edit(
                "reconciler/runtime/results.py",
                "        _succeeded(done.action, done, state)\n",
                "",
            ),
        ),
        (_rule("test_own_writes_count_before_a_watch_shows_them"),),
        seeds=range(10),
    ),
    Bug(
        "back-off forgotten on restart",
        "That a replacement failed is remembered in memory only; a restarted controller tries again at once.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "        annotations[labels.COMMAND_FAILED] = text_of(failure)\n",
                "        assert failure.count\n",
            ),
            Edit(
                "reconciler/runtime/results.py",
                "def _(action: PatchObject, done: Done, state: State) -> None:\n",
                "def _(action: PatchObject, done: Done, state: State) -> None:\n"
                '    if action.verb == "RollBackCommand":\n'
                '        state.actions.failed(f"StartCommand {action.ref}", done.at, 60.0)\n',
            ),
        ),
        (_rule("test_backoff_survives_a_restart"),),
    ),
    Bug(
        "limits checked against nodes instead of claims",
        "Claims that have no Node yet do not count against their pool's limits.",
        (
            Edit(
                "reconciler/scheduling/world.py",
                "        if state.pool_name == pool.name and not state.deleting\n",
                "        if state.pool_name == pool.name and not state.deleting and state.node is not None\n",
            ),
        ),
        (_rule("test_limits_count_claims_that_have_no_node_yet"),),
        seeds=range(145, 146),
    ),
    Bug(
        "nomination ignored by emptiness",
        "An empty node goes although a pending pod is expected there.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    until = view.snapshot.nominated_until.get(key)\n",
                "    until = None\n",
            ),
            Edit(
                "reconciler/disruption/commands.py",
                "    until = snapshot.nominated_until.get(name)\n",
                "    until = None\n",
            ),
        ),
        (_rule("test_a_nominated_node_is_not_empty"),),
    ),
    Bug(
        "expectations never taken back",
        "Pods that were told a node which died wait for it, and get no other.",
        (
            Edit(
                "reconciler/lifecycle/expectations.py",
                "        if node is None or node.metadata.deleting:\n",
                "        if node is not None and node.metadata.deleting:\n",
            ),
        ),
        (f"{_EXPECTATIONS}::test_what_was_expected_of_a_node_that_goes_is_taken_back",),
    ),
    Bug(
        "node takes pods before they are told",
        "A node loses its taint while the pods that it was made for do not know of it: others come first.",
        (
            Edit(
                "reconciler/lifecycle/expectations.py",
                "    if node.registered or created is None or not (untold or later):\n",
                "    if created is not None:\n",
            ),
        ),
        (f"{_EXPECTATIONS}::test_the_node_takes_pods_when_they_have_been_told",),
    ),
    Bug(
        "node does not give way",
        "A node opens although more important pods wait for another: they come to it, or make its own pods go.",
        (
            Edit(
                "reconciler/lifecycle/expectations.py", "    return any(rank > least for ", "    return any(False for "
            ),
        ),
        (f"{_EXPECTATIONS}::test_a_node_gives_way_to_pods_that_are_more_important",),
    ),
    Bug(
        "node is empty when a pod is expected no more",
        "A node goes as empty while the pod that it was made for is about to be placed there again.",
        (
            Edit(
                "reconciler/runtime/state.py",
                "                self._expects_no_more(name, now)\n",
                "                pass\n",
            ),
        ),
        (
            "tests/unit/runtime/test_state.py"
            "::test_a_node_on_which_a_pod_is_expected_no_more_is_kept_until_the_pod_has_been_looked_at",
        ),
    ),
    Bug(
        "start-up taints hide domains",
        "Pods on a node that starts do not count for a spread that honours taints: one more node is made beside it.",
        (
            Edit(
                "reconciler/scheduling/tallies.py", "self._coming.get(node.name, node.spec.taints)", "node.spec.taints"
            ),
        ),
        ("tests/unit/scheduling/test_catalogue_nodes.py::test_what_a_node_starts_with_hides_no_domain",),
    ),
    Bug(
        "lease not re-checked before terminate",
        "A termination starts although the lease's renew deadline has passed while the plan was being performed.",
        (
            Edit(
                "reconciler/runtime/executor.py",
                "        if not self._may_act():\n",
                '        if not self._may_act() and type(action).__name__ != "TerminateInstance":\n',
            ),
        ),
        (_rule("test_no_action_starts_after_the_renew_deadline"),),
    ),
    Bug(
        "terminate by node name",
        "The instance that ends is the one behind the Node of the claim's node name, whoever registered under it.",
        (
            Edit(
                "reconciler/lifecycle/instance_end.py",
                "    instance, asked = view.snapshot.instances.get(instance_id),",
                "    named = view.snapshot.nodes.get(claim.status.node_name)\n"
                '    own = named.spec.provider_id.rsplit("/", 1)[-1] if named is not None else ""\n'
                "    instance_id = own or instance_id\n"
                "    instance, asked = view.snapshot.instances.get(instance_id),",
            ),
        ),
        (_rule("test_an_instance_ends_by_its_id"),),
    ),
    Bug(
        "garbage collection younger than the adoption time",
        "An instance without a claim is ended at once, though its claim may only not have been seen yet.",
        (
            Edit(
                "reconciler/lifecycle/garbage.py",
                "instance.launched + view.snapshot.settings.adoption_time",
                "instance.launched",
            ),
        ),
        (_rule("test_a_young_instance_without_a_claim_is_left_alone"),),
        seeds=range(133, 134),
    ),
    Bug(
        "no last look",
        "An empty node is deleted although a pod has come to it that the watch has not told of.",
        (
            Edit(
                "reconciler/runtime/performing.py",
                "    if action.expected_pods is not None and action.node_name:\n",
                "    if action.expected_pods is not None and not action.node_name:\n",
            ),
        ),
        (_rule("test_pods_are_listed_once_more_before_an_empty_node_goes"),),
    ),
    Bug(
        "old news believed",
        "Nodes are drained and instances ended by what was true an hour ago.",
        (
            Edit(
                "reconciler/runtime/state.py",
                "        limit = now - self.settings.stale_after\n",
                "        limit = now - 40 * self.settings.stale_after\n",
            ),
            Edit(
                "reconciler/model/snapshot.py",
                "        limit = self.now - self.settings.stale_after\n",
                "        limit = self.now - 40 * self.settings.stale_after\n",
            ),
        ),
        (_rule("test_nothing_is_destroyed_on_old_news"),),
    ),
    Bug(
        "names that differ each time",
        "A creation that is repeated makes a second claim instead of meeting the first.",
        (
            Edit(
                "reconciler/scheduling/claims.py",
                '    digest = hashlib.sha256("\\n".join([salt, node.pool, *uids]).encode()).hexdigest()\n',
                "    once = snapshot.now.isoformat()\n"
                '    digest = hashlib.sha256("\\n".join([once, salt, node.pool, *uids]).encode()).hexdigest()\n',
            ),
        ),
        (_rule("test_a_creation_whose_answer_was_lost_meets_its_own_name"),),
    ),
    Bug(
        "retried in place",
        "What failed is tried again at once, by the same news, without a look at the world.",
        (
            Edit(
                "reconciler/runtime/executor.py",
                "                done = self._perform(action)\n",
                "                done = self._perform(action)\n"
                '                done = self._perform(action) if done.outcome == "unavailable" else done\n',
            ),
        ),
        (_rule("test_what_failed_is_left_alone_for_longer_each_time"),),
    ),
    Bug(
        "one back-off for all",
        "While one object is left alone because something failed, nothing else is done either.",
        (
            Edit(
                "reconciler/runtime/controller.py",
                "                waiting[action.lane] = until\n",
                "                return [], until\n",
            ),
        ),
        (_rule("test_a_pool_whose_claims_fail_holds_up_no_other"),),
    ),
    Bug(
        "one odd object stops everything",
        "An annotation that cannot be read keeps the whole plan from being made.",
        (
            Edit(
                "reconciler/lifecycle/writes.py",
                "        return step()\n    except Exception as error:\n",
                "        return step()\n    except KeyError as error:\n",
            ),
            Edit(
                "reconciler/model/memory.py",
                "        except Exception as error:  # what one object",
                "        except KeyError as error:  # what one object",
            ),
        ),
        (_rule("test_an_object_that_cannot_be_understood_holds_up_only_itself"),),
    ),
    Bug(
        "volumes that are attached already are forgotten",
        "A node that can attach no more volumes is taken for one that can.",
        (
            Edit(
                "reconciler/scheduling/attachments.py",
                "        return {driver: limit - self._attached.counts[driver] for driver, limit",
                "        return {driver: limit.copy() for driver, limit",
            ),
        ),
        ("tests/simulation/test_full_of_volumes.py::test_a_pod_that_comes_later_is_not_sent_to_a_full_node",),
    ),
    Bug(
        "claims of devices overlooked",
        "A pod that claims devices in an init container only is placed as if it claimed nothing.",
        (
            Edit(
                "reconciler/model/pods.py",
                "    for containers in (pod.spec.containers, pod.spec.init_containers):\n",
                "    for containers in (pod.spec.containers,):\n",
            ),
        ),
        ("tests/unit/scheduling/test_catalogue_devices.py::test_222_pods_that_claim_devices_are_refused",),
    ),
    Bug(
        "a device for several",
        "A device that allows one allocation is given to every claim that asks.",
        (
            Edit(
                "reconciler/scheduling/devices/usage.py",
                "        if not device.spec.allow_multiple_allocations:\n            return False\n        return all(",
                "        return all(",
            ),
        ),
        ("tests/unit/scheduling/test_catalogue_devices_allocated.py::test_224_a_device_is_had_once",),
    ),
    Bug(
        "drivers are not waited for",
        "A node is initialized although a driver whose devices pods claim has published nothing yet.",
        (
            Edit(
                "reconciler/lifecycle/initialization.py",
                '    return sorted({driver.strip() for driver in wanted.split(",")} - own - {""})\n',
                "    return []\n",
            ),
        ),
        ("tests/unit/lifecycle/test_initialization.py::test_devices_that_pods_claim_are_waited_for_driver_by_driver",),
    ),
    Bug(
        "spread by somebody else's service",
        "Default spread constraints count whom any Service of the namespace selects.",
        (
            Edit(
                "reconciler/scheduling/default_spread.py",
                "            if all(own.get(key) == value for key, value in selector.items()):\n",
                "            if selector:\n",
            ),
        ),
        ("tests/unit/scheduling/test_default_spread.py::test_a_pod_that_belongs_to_nothing_known_is_left_as_it_is",),
    ),
    Bug(
        "decisions of another counted",
        "A new leader measures from when it first saw a pod, although the one before decided about it.",
        (
            Edit(
                "reconciler/telemetry/pod_times.py",
                "        if wait.asking and wait.seen is None and telling:\n",
                "        if wait.asking and wait.seen is None:\n",
            ),
            Edit(
                "reconciler/telemetry/pod_times.py",
                "            wait.seen, wait.decided, wait.served = (now if leading and wait.asking else None), ",
                "            wait.decided, wait.served = ",
            ),
        ),
        (
            "tests/unit/telemetry/test_pod_times.py"
            "::test_a_new_leader_knows_since_when_pods_wait_but_not_what_was_decided",
        ),
    ),
    Bug(
        "what is under way is forgotten",
        "While the creation of a static pool's member is under way, another one is created in its place.",
        (
            Edit(
                "reconciler/provisioning/static.py",
                "    wanted = missing - len(asked)\n",
                "    wanted = missing\n",
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
                "reconciler/scheduling/solve.py",
                "for late in (False, True))",
                "for late in (True, False))",
            ),
        ),
        ("tests/unit/scheduling/test_buffers.py::test_real_pods_take_what_room_there_is_and_virtual_ones_make_way",),
    ),
    Bug(
        "room that is not missed",
        "A node goes as empty although a CapacityBuffer keeps room there.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "return _Wish(empty and not held, ",
                "return _Wish(empty, ",
            ),
        ),
        (
            "tests/unit/disruption/test_buffers.py::test_an_empty_node_where_room_is_kept_stays_and_that_is_said",
            "tests/simulation/test_capacity_buffers.py::test_a_controller_that_takes_over_keeps_them",
        ),
    ),
)
