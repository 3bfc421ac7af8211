"""Concurrency limits of requests per target and per organization, so that a slow receiver delays only itself.

Each worker learns the limits from its own requests. The limit of a target holds for the requests of all workers
(`system_queries.claim_deliveries` counts those of the others), that of an organization for the worker's own.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

Key = TypeVar("Key", bound=Hashable)
SLOTS = 512
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class LimitBounds:
    """Bounds of a limit: it starts at `first`, is halved down to `least` by each failure that costs time, and grows
    by one up to `most` with each success.
    """

    least: int
    first: int
    most: int


TARGET = LimitBounds(least=1, first=4, most=64)
ORGANIZATION = LimitBounds(least=16, first=64, most=256)


@dataclass(frozen=True, slots=True)
class ClaimShare:
    """Share of a target in a claim: at most `most` deliveries. `free` is the target's limit less the requests of this
    worker; the requests of other workers are counted by the claim.
    """

    most: int
    free: int


@dataclass(slots=True)
class _Limit:
    limit: int
    taken: int = 0


class LimitGroup(Generic[Key]):
    """The limits of all targets, or of all organizations; idle ones are dropped when there are too many."""

    def __init__(self, bounds: LimitBounds) -> None:
        self._bounds = bounds
        self._limits: dict[Key, _Limit] = {}

    def free(self, key: Key) -> int:
        """Return how many more requests may start."""
        known = self._limits.get(key)
        return self._bounds.first if known is None else max(0, known.limit - known.taken)

    def take(self, key: Key) -> None:
        """Count a request that starts."""
        self._limits.setdefault(key, _Limit(self._bounds.first)).taken += 1

    def give_back(self, key: Key, *, slow: bool, succeeded: bool) -> None:
        """Count a request that has ended."""
        known = self._limits[key]
        known.taken -= 1
        if slow:
            known.limit = max(self._bounds.least, known.limit // 2)
        elif succeeded:
            known.limit = min(self._bounds.most, known.limit + 1)
        if known.taken == 0 and (known.limit == self._bounds.first or len(self._limits) > REMEMBERED):
            del self._limits[key]


class ConcurrencyLimits:
    """The concurrency limits of one worker."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = slots
        self._taken = 0
        self._targets: LimitGroup[UUID] = LimitGroup(TARGET)
        self._organizations: LimitGroup[UUID] = LimitGroup(ORGANIZATION)

    @property
    def free(self) -> int:
        """Return how many more requests may start in total."""
        return self._slots - self._taken

    def plan(self, waiting: Mapping[UUID, UUID]) -> dict[UUID, ClaimShare]:
        """Plan how many deliveries to claim for each target of `waiting` (target to organization), in its order;
        targets without capacity are left out.
        """
        left = self.free
        of_organization: dict[UUID, int] = {}
        shares: dict[UUID, ClaimShare] = {}
        for target, organization in waiting.items():
            available = of_organization.setdefault(organization, self._organizations.free(organization))
            free = self._targets.free(target)
            most = min(free, available, left)
            if most > 0:
                shares[target] = ClaimShare(most, free)
                of_organization[organization] -= most
                left -= most
        return shares

    def take(self, target: UUID, organization: UUID) -> None:
        """Count a request that starts."""
        self._taken += 1
        self._targets.take(target)
        self._organizations.take(organization)

    def give_back(self, target: UUID, organization: UUID, *, slow: bool, succeeded: bool) -> None:
        """Count a request that has ended; `slow` if it cost time without a result."""
        self._taken -= 1
        self._targets.give_back(target, slow=slow, succeeded=succeeded)
        self._organizations.give_back(organization, slow=slow, succeeded=succeeded)
