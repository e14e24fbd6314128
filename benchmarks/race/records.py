"""What is known of one run, as it is kept; times are seconds after the beginning of its load, earlier ones negative."""

from __future__ import annotations

import msgspec


class Life(msgspec.Struct, frozen=True):
    """A pod, by its label `app`: when it was created, first Unschedulable, first Ready, and gone (deleted, completed or
    failed). `node` is where it ran; times that never came are None."""

    app: str
    created: float
    unschedulable: float | None = None
    node: str = ""
    ready: float | None = None
    gone: float | None = None


class Machine(msgspec.Struct, frozen=True):
    """An instance: the name of its node, what it is, its price in millionths of a dollar per hour, and its time."""

    id: str
    node: str
    type: str
    zone: str
    market: str
    price: int
    launched: float
    ended: float | None = None


class Order(msgspec.Struct, frozen=True):
    """A CreateFleet: the IDs of its instances, and the codes of its errors."""

    asked: float
    answered: float
    instances: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class Key(msgspec.Struct, frozen=True):
    """What a run is a run of. `pods` are those of the load (a), by which others are sized, `seconds` those of the run;
    `boots` is the name of how long machines boot, `code` a hash of all that the outcome depends on."""

    load: str
    side: str
    seed: int
    number: int
    pods: int
    seconds: float
    boots: str
    code: str

    @property
    def name(self) -> str:
        """Of the file in which the run is kept, without its ending."""
        size = f"{self.pods}pods-{self.seconds:g}s-{self.boots}"
        return f"{self.load}-{self.side}-seed{self.seed}-run{self.number}-{size}-{self.code}"


class Run(msgspec.Struct, frozen=True):
    """What came of a run.

    `calls` are those to AWS by action. `bounds` are of the minutes, in millionths of a dollar per hour. CPU time is of
    the controller and its workers since the beginning of the load; memory is the proportional set size of them all, at
    its peak and in the end.
    """

    key: Key
    lives: tuple[Life, ...]
    machines: tuple[Machine, ...]
    orders: tuple[Order, ...]
    calls: dict[str, int]
    evictions: int
    bounds: tuple[float, ...]
    cpu_seconds: float
    peak_bytes: int
    rest_bytes: int
    #: Of the machine that it ran on, over its last minute.
    load_average: float = 0.0

    @property
    def seconds(self) -> float:
        """From the beginning of the load to the end."""
        return self.key.seconds
