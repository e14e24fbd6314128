"""The short memory of what was decided lately: nodes that pods are expected on, deeds that do not show yet, and writes
that the API server did not keep, or that another writer undoes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from kerf.model.kept import Field, dropped
from kerf.model.plan import Nomination, PatchObject, Plan
from kerf.runtime.state.backoff import Contested
from kerf_api.v1.meta import ObjectMeta

#: While pods wait, passes follow each other faster than this, and each replaces the promises of the one before.
PROMISES_KEPT: Final = timedelta(minutes=1)
#: A field that was not kept is written again after this time: the schema may have been upgraded meanwhile.
NOT_KEPT_FOR: Final = timedelta(minutes=30)


class Promises:
    """One thread uses it. `nominated` and `latest` are read, and replaced or changed here alone."""

    def __init__(self) -> None:
        #: By key of `state_nodes`: a pod is expected there until then.
        self.nominated: dict[str, datetime] = {}
        #: The plan of the latest pass over pending pods.
        self.latest = Plan()
        #: The candidates for disruption for which the latest plan had no work left, by method and key of `state_nodes`.
        self.candidates_left_over: frozenset[tuple[str, str]] = frozenset()
        self._settling: dict[tuple[str, str], datetime] = {}
        self._dropped: dict[Field, datetime] = {}
        self._contested = Contested()

    def planned(self, plan: Plan) -> None:
        """Take in the nominations of a plan, the candidates that it left over, and the plan itself when it served the
        batch. Of one that orders nodes before that, only the nominations replace those before."""
        if plan.provisioned:
            self.latest = plan
        elif plan.try_at is not None and plan.nominations:
            self.latest = replace(self.latest, nominations=plan.nominations)
        self.candidates_left_over = plan.candidates_left_over
        for nomination in (one for one in plan.nominations if not one.over):
            self.expect(nomination.target, nomination.until)

    def expect(self, target: str, until: datetime) -> None:
        """A pod is expected on a node until then at least."""
        self.nominated[target] = max(self.nominated.get(target, until), until)

    @property
    def facts(self) -> dict[str, Any]:
        """Fields of a snapshot, as the latest plans left them."""
        return {
            "nominations": self.latest.nominations,
            "buffer_pods": self.latest.buffer_pods,
            "unread_since": self.latest.unread_since,
            "left_over": self.latest.left_over,
            "had_turn": self.latest.had_turn,
            "candidates_left_over": self.candidates_left_over,
            "dropped_fields": frozenset(self._dropped),
        }

    def drop(self, target: str) -> None:
        """The node is gone."""
        self.nominated.pop(target, None)

    def settle(self, key: str, uid: str, until: datetime) -> None:
        """A deed was accepted; it is not asked again until then, though the watch may not show it yet."""
        self._settling[key, uid] = until

    def settles(self, key: str, uid: str) -> datetime | None:
        """The instant until which a deed is not asked again; None when it may be."""
        return self._settling.get((key, uid))

    def written(self, action: PatchObject, answer: Any, now: datetime) -> tuple[str, ...]:
        """The API server accepted a write, and this is the object that it answered with; the fields that it dropped."""
        found = dropped(action, answer)
        for one in found:
            self._dropped[one] = now + NOT_KEPT_FOR
        return tuple(name for _, name, _ in found)

    def contested(self, action: PatchObject, known: ObjectMeta | None, answer: ObjectMeta | None, now: datetime) -> str:
        """The outcome, when another writer has undone a write too often or come before it (the next one waits); or "".

        `known` is the object as known when the answer came, and `answer` as the API server answered it; None after a
        conflict.
        """
        if answer is None:
            contest = self._contested.refused(action, known.uid if known is not None else "", now)
        else:
            before = known.resource_version if known is not None else ""
            contest = self._contested.written(action, answer.uid, before, answer.resource_version, now)
        if contest is None:
            return ""
        self.settle(action.key, "", contest.until)
        return contest.outcome

    def forget_old(self, now: datetime) -> None:
        """Drop every promise whose time is over."""
        self._contested.forget_old(now)
        for target in [t for t, until in self.nominated.items() if until <= now]:
            del self.nominated[target]
        if self.latest.nominations and self.latest.nominations[0].until + PROMISES_KEPT <= now:
            self.latest = replace(self.latest, nominations=())
        for key in [k for k, until in self._settling.items() if until <= now]:
            del self._settling[key]
        for name in [name for name, until in self._dropped.items() if until <= now]:
            del self._dropped[name]

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: every promise lasts as long as before."""
        self._contested.set_back(by)
        self.nominated = {target: until - by for target, until in self.nominated.items()}
        self._settling = {key: until - by for key, until in self._settling.items()}
        self._dropped = {name: until - by for name, until in self._dropped.items()}
        self.latest = replace(
            self.latest,
            nominations=tuple(_earlier(one, by) for one in self.latest.nominations),
            unread_since={key: since - by for key, since in self.latest.unread_since.items()},
        )


def _earlier(one: Nomination, by: timedelta) -> Nomination:
    return replace(one, until=one.until - by, since=None if one.since is None else one.since - by)
