"""Statements about deliveries. Those that claim due deliveries and record their results cross organizations.

Only the database's clock decides what is due and how long a lease lasts (`now`). A claim moves `due_at` to the end of
the lease, so a lease that lapses needs no cleanup: the row is due again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from secrets import randbits
from uuid import UUID

from sqlalchemy import ARRAY, Boolean, Float, Integer, Interval, Text, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlmodel import col

from switchboard.foundation.database import BATCH, ReadSession, SystemSession, now
from switchboard.foundation.encryption.content import ContentText
from switchboard.foundation.events.models import Delivery, Event
from switchboard.resources.deliveries.sender import AttemptResult, ClaimedDelivery
from switchboard.resources.identity.queries import ExpiringRows

MAX_FAILURES = 20
WAIT = timedelta(days=7)
# Retries start from the time of the schedule to this share of the delay later, so that those of an endpoint that was
# unreachable do not all come at once.
JITTER = 0.1
WORKER_BITS = 64
UUIDS = ARRAY(Uuid())
NOW = bindparam("now", type_=TIMESTAMP(timezone=True))

# A loose index scan: one probe per target with pending deliveries, however many it has.
_WAITING = text(
    """
    with recursive heads as (
        (select target_id, due_at from delivery where status = 'pending' and target_id > :after order by target_id,
          due_at limit 1)
        union all
        select next.target_id, next.due_at from heads cross join lateral (
            select target_id, due_at from delivery
            where status = 'pending' and target_id > heads.target_id order by target_id, due_at limit 1
        ) next
    )
    select head.target_id, target.organization_id, target.enabled and target.url is not null as open,
        extract(epoch from head.due_at - :now)::float8 as seconds
    from (select * from heads limit :visits) head left join event_target target on target.id = head.target_id
    """
).bindparams(NOW)

# A statement of its own, so that the claim after it sees what the last holder of these locks has claimed.
_LOCK = text(
    "select id from event_target where id = any(:targets) and enabled and url is not null for no key update skip locked"
).bindparams(bindparam("targets", type_=UUIDS))

# From both ends of the queue: an odd delivery is taken from either at random, so that single requests take turns too.
_CLAIM = (
    text(
        """
    with share as (
        select wanted.target_id, least(wanted.most, wanted.free - (
            select count(*) from delivery
            where status = 'pending' and lease_token is not null and target_id = wanted.target_id and due_at > :now
                and lease_token not between :first_token and :last_token
        )) as size, (random() < 0.5)::integer as odd
        from unnest(:targets, :most, :free) as wanted(target_id, most, free)
    ), oldest as (
        select due.id from share cross join lateral (
            select id from delivery
            where status = 'pending' and target_id = share.target_id and due_at <= :now
            order by due_at limit greatest(0, (size + odd) / 2) for update skip locked
        ) due
    ), newest as (
        select due.id from share cross join lateral (
            select id from delivery
            where status = 'pending' and target_id = share.target_id and due_at <= :now
                and id not in (select id from oldest)
            order by due_at desc limit greatest(0, (size + 1 - odd) / 2) for update skip locked
        ) due
    )
    update delivery set due_at = :now + make_interval(secs => :lease), lease_token = :token
    from (select id from oldest union all select id from newest) chosen, event_target target
    where delivery.id = chosen.id and target.id = delivery.target_id
    returning delivery.id, delivery.organization_id, delivery.target_id, target.kind, target.url, delivery.event_type,
        delivery.subject_id, delivery.body,
        (select wrapped from organization_key key where key.organization_id = delivery.organization_id
          and key.id = substring(delivery.body from '^sbt1[.]([0-9a-f]{32})[.]')::uuid),
        delivery.attempts, delivery.created_at, target.secret,
        case when target.previous_secret_expires_at > :now then target.previous_secret end, delivery.lease_token
    """
    )
    .bindparams(
        NOW,
        bindparam("targets", type_=UUIDS),
        bindparam("most", type_=ARRAY(Integer())),
        bindparam("free", type_=ARRAY(Integer())),
        bindparam("first_token", type_=Uuid()),
        bindparam("last_token", type_=Uuid()),
    )
    .columns(body=ContentText())
)

_RECORD = text(
    """
    with result as (
        select * from unnest(:ids, :tokens, :statuses, :delays, :codes, :errors, :started, :durations)
            as result(id, token, status, delay, code, error, started_at, duration_ms)
    ), changed as (
        update delivery set attempts = attempts + 1, status = result.status, lease_token = null,
            due_at = :now + make_interval(secs => result.delay * (1 + :jitter * random())),
              next_attempt_at = :now + make_interval(secs => result.delay),
            last_status_code = result.code, last_error = result.error,
              delivered_at = case when result.status = 'delivered' then :now end
        from result where delivery.id = result.id and delivery.lease_token = result.token
          and delivery.status = 'pending'
        returning delivery.id, delivery.organization_id, delivery.target_id, delivery.attempts, delivery.status,
            result.code, result.error, result.started_at, result.duration_ms
    ), attempt as (
        insert into delivery_attempt (organization_id, delivery_id, number, started_at, duration_ms, status_code, error)
        select organization_id, id, attempts, started_at, duration_ms, code, error from changed
    )
    select id, target_id, status from changed
    """
).bindparams(
    NOW,
    bindparam("ids", type_=UUIDS),
    bindparam("tokens", type_=UUIDS),
    bindparam("statuses", type_=ARRAY(Text())),
    bindparam("delays", type_=ARRAY(Float(53))),
    bindparam("codes", type_=ARRAY(Integer())),
    bindparam("errors", type_=ARRAY(Text())),
    bindparam("started", type_=ARRAY(TIMESTAMP(timezone=True))),
    bindparam("durations", type_=ARRAY(Integer())),
    bindparam("jitter", type_=Float(53)),
)

_RESET = text(
    "update event_target set consecutive_failures = 0 where id = any(:targets) and consecutive_failures <> 0"
).bindparams(bindparam("targets", type_=UUIDS))

# In the order of ids, so that two workers never deadlock. Failures while an endpoint is disabled do not count.
_COUNT = text(
    """
    with counted as (
        select target.id, least(:most,
          failed.added + case when failed.reset then 0 else target.consecutive_failures end) as failures
        from event_target target join unnest(:targets, :resets, :added) as failed(id, reset,
          added) on failed.id = target.id
        where target.enabled and target.kind = 'endpoint' order by target.id for update of target
    )
    update event_target target
    set consecutive_failures = counted.failures, enabled = counted.failures < :most,
        updated_at = case when counted.failures < :most then target.updated_at else :now end
    from counted where target.id = counted.id
    returning target.id, target.organization_id, target.enabled
    """
).bindparams(
    NOW,
    bindparam("targets", type_=UUIDS),
    bindparam("resets", type_=ARRAY(Boolean())),
    bindparam("added", type_=ARRAY(Integer())),
)

_HAND_BACK = text(
    "update delivery set due_at = :now, lease_token = null where lease_token = any(:tokens) and status = 'pending'"
).bindparams(NOW, bindparam("tokens", type_=UUIDS))

_EXPIRE = text(
    """
    update delivery set status = 'failed', last_error = :error, due_at = null, next_attempt_at = null,
      lease_token = null
    where id in (select id from delivery where status = 'pending' and created_at < :now - :wait and due_at <= :now
      limit :most)
    returning id
    """
).bindparams(NOW, bindparam("wait", type_=Interval()))

_QUEUE_AGE = text(
    """
    with recursive heads as (
        (select target_id, due_at from delivery where status = 'pending' order by target_id, due_at limit 1)
        union all
        select next.target_id, next.due_at from heads cross join lateral (
            select target_id, due_at from delivery
            where status = 'pending' and target_id > heads.target_id order by target_id, due_at limit 1
        ) next
    )
    select coalesce(extract(epoch from max(:now - head.due_at)), 0)::float8
    from heads head join event_target target on target.id = head.target_id
    where target.enabled and target.url is not null and head.due_at <= :now
    """
).bindparams(NOW)

ENDED_DELIVERIES = ExpiringRows(Delivery, (col(Delivery.status) != "pending",))
HANDLED_EVENTS = ExpiringRows(Event, (col(Event.watch_due_at).is_(None), col(Event.trigger_due_at).is_(None)))
# By target, because that is how the pending ones are indexed.
_AWAITED = text(
    """
    select distinct pending.subject_id
    from event_target target
    join delivery pending on pending.target_id = target.id and pending.status = 'pending'
    where target.organization_id = :organization_id
    """
)


@dataclass(frozen=True, slots=True)
class ClaimShare:
    """Share of a target in a claim: at most `most` deliveries. `free` is the target's limit less the requests of this
    worker; the requests of other workers are counted by the claim.
    """

    most: int
    free: int


@dataclass(frozen=True, slots=True)
class WaitingTargets:
    """A part of the targets with pending deliveries.

    `ready` maps targets to claim from to their organizations; `soonest` is the seconds until another target is due;
    `next` is where the next part starts, None for the beginning.
    """

    ready: Mapping[UUID, UUID]
    soonest: float
    next: UUID | None


async def list_waiting_targets(session: SystemSession, *, after: UUID, visits: int) -> WaitingTargets:
    """Look at up to `visits` targets after `after`, in the order of their ids."""
    rows = await session.fetch(_WAITING, {"after": after, "visits": visits, "now": now()})
    ready = {row.target_id: row.organization_id for row in rows if row.open and row.seconds <= 0}
    soonest = min((row.seconds for row in rows if row.open and row.seconds > 0), default=inf)
    return WaitingTargets(ready, soonest, rows[-1].target_id if len(rows) == visits else None)


def create_lease_token(worker: int) -> UUID:
    """Create the fencing token of a claim. `worker` is a random number of `WORKER_BITS` bits."""
    return UUID(int=worker << WORKER_BITS | randbits(WORKER_BITS))


async def lock_targets(session: SystemSession, targets: Collection[UUID]) -> set[UUID]:
    """Lock those of `targets` that are open and that no other transaction has locked, and return them. Until the
    transaction ends, no other worker claims from them.
    """
    return {row.id for row in await session.fetch(_LOCK, {"targets": list(targets)})}


async def claim_deliveries(
    session: SystemSession, shares: Mapping[UUID, ClaimShare], *, token: UUID, lease: float
) -> list[ClaimedDelivery]:
    """Claim due deliveries of each target for `lease` seconds, half of them the oldest and half the newest, up to the
    target's share. The targets are locked (`lock_targets`).

    Other workers' leases reduce the share: they are those whose token begins with another worker than `token` does.
    """
    first = token.int >> WORKER_BITS << WORKER_BITS
    values = {
        "targets": list(shares),
        "most": [share.most for share in shares.values()],
        "free": [share.free for share in shares.values()],
        "token": token,
        "first_token": UUID(int=first),
        "last_token": UUID(int=first + 2**WORKER_BITS - 1),
        "lease": lease,
        "now": now(),
    }
    return [ClaimedDelivery(*row) for row in await session.fetch(_CLAIM, values)]


async def release_leases(session: SystemSession, tokens: Sequence[UUID]) -> None:
    """Release leases: deliveries without a result are due at once."""
    await session.fetch(_HAND_BACK, {"tokens": list(tokens), "now": now()})


async def record_attempts(session: SystemSession, results: Sequence[AttemptResult]) -> dict[UUID, tuple[UUID, str]]:
    """Record results whose leases still hold; return the target and the status of each of their deliveries, by id."""
    values = {
        "ids": [result.claimed.id for result in results],
        "tokens": [result.claimed.token for result in results],
        "statuses": [result.status for result in results],
        "delays": [result.delay for result in results],
        "codes": [result.status_code for result in results],
        "errors": [result.error for result in results],
        "started": [result.started_at for result in results],
        "durations": [result.duration_ms for result in results],
        "jitter": JITTER,
        "now": now(),
    }
    return {row.id: (row.target_id, row.status) for row in await session.fetch(_RECORD, values)}


async def reset_failures(session: SystemSession, targets: Sequence[UUID]) -> None:
    """Reset the consecutive failures of targets."""
    await session.fetch(_RESET, {"targets": targets})


async def count_failures(session: SystemSession, failed: Mapping[UUID, tuple[bool, int]]) -> list[tuple[UUID, UUID]]:
    """Add consecutive failures to those of endpoints, or to zero for those that are reset.

    Returns the id and organization of each endpoint that was disabled.
    """
    values = {
        "targets": list(failed),
        "resets": [reset for reset, _ in failed.values()],
        "added": [added for _, added in failed.values()],
        "most": MAX_FAILURES,
        "now": now(),
    }
    return [(row.id, row.organization_id) for row in await session.fetch(_COUNT, values) if not row.enabled]


async def fail_waiting_deliveries(session: SystemSession) -> int:
    """Fail deliveries that have waited for a disabled endpoint for seven days, a batch at most; return how many."""
    values = {"wait": WAIT, "error": "the endpoint stayed disabled", "now": now(), "most": BATCH}
    return len(await session.fetch(_EXPIRE, values))


async def measure_queue_age(session: SystemSession) -> float:
    """Return for how many seconds the oldest due delivery has been waiting for a worker."""
    ((age,),) = await session.fetch(_QUEUE_AGE, {"now": now()})
    return float(age)


async def list_undelivered_subjects(session: ReadSession) -> list[UUID]:
    """List the ids of the calls, text messages, and simulations that pending deliveries are about."""
    rows = await session.fetch(_AWAITED, {"organization_id": session.organization_id})
    return [row.subject_id for row in rows]
