"""Statements about deliveries. Those that claim due deliveries and record their results cross organizations.

The rows of `delivery_due` are the queue. A claim sets `due_at` to the end of the lease, so a lease that lapses needs no
cleanup: the row is made ready again. Only the database's clock decides what is due and how long a lease lasts (`now`).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, Boolean, Float, Integer, Text, TextClause, Uuid, bindparam, exists, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeEngine
from sqlmodel import col, select, update

from switchboard.foundation.database import (
    BATCH,
    NOT_MOVING,
    ReadSession,
    SystemSession,
    WriteSession,
    is_among,
    new_id,
    now,
)
from switchboard.foundation.encryption.content import ContentText
from switchboard.foundation.events.models import Delivery, DueDelivery, DueEvent, Event
from switchboard.foundation.work import EPOCH, FRESH, DueRows
from switchboard.resources.deliveries.sender import AttemptResult, ClaimedDelivery
from switchboard.resources.identity.queries import ExpiringRows

MAX_FAILURES = 20
WAIT, NO_WAIT = timedelta(days=7), timedelta(0)
EXPIRED: Final = "the endpoint stayed disabled"
# Retries start from the time of the schedule to this share of the delay later, so that those of an endpoint that was
# unreachable do not all come at once.
JITTER = 0.1
MOST_AT_ONCE: Final = 64
"""Requests that a target gets at once, at most."""
TYPES: Final[Mapping[str, TypeEngine[Any]]] = {
    "is_complete": Boolean(),
    **dict.fromkeys(("organization_id", "token"), Uuid()),
    **dict.fromkeys(("most", "most_failures", "most_at_once"), Integer()),
    **dict.fromkeys(("now", "since", "before", "epoch", "fresh"), TIMESTAMP(timezone=True)),
    **dict.fromkeys(("full", "targets", "ids", "tokens"), ARRAY(Uuid())),
    **dict.fromkeys(("buckets", "limits", "codes", "durations", "failed", "slow", "good"), ARRAY(Integer())),
    **dict.fromkeys(("heads", "started"), ARRAY(TIMESTAMP(timezone=True))),
    **dict.fromkeys(("statuses", "errors"), ARRAY(Text())),
    "delays": ARRAY(Float(53)),
    "jitter": Float(53),
    "resets": ARRAY(Boolean()),
}
"""Types of the statements' parameters."""


def _bind(statement: str) -> TextClause:
    names = TYPES.keys() & set(re.findall(r":(\w+)", statement))
    return text(statement).bindparams(*(bindparam(name, type_=TYPES[name]) for name in names))


# Loose index scans: one probe for each target that has ready deliveries, however many it has. They are ordered by each
# column of the index: with row-level security, PostgreSQL does not take the bucket for the constant that it is.
_OPEN_ORGANIZATIONS = _bind(
    f"""
    with recursive heads as (
        select head.* from unnest(:buckets) as owned(bucket) cross join lateral (
            select owned.bucket, organization_id, target_id from delivery_due
            where is_ready and bucket(organization_id) = owned.bucket and due_at >= :since
            order by bucket(organization_id), organization_id, target_id limit 1
        ) head
        union all
        select next.* from heads cross join lateral (
            select heads.bucket, organization_id, target_id from delivery_due
            where is_ready and bucket(organization_id) = heads.bucket and due_at >= :since
                and (organization_id, target_id) > (heads.organization_id, heads.target_id)
            order by bucket(organization_id), organization_id, target_id limit 1
        ) next
    )
    select distinct heads.organization_id from heads join event_target target on target.id = heads.target_id
    where target.enabled and target.url is not null and heads.organization_id <> all(:full)
        and heads.organization_id {NOT_MOVING}
    limit :most
    """  # noqa: S608
)

# A statement of its own, so that the claim after it sees what the last holder of these locks has claimed. Targets are
# locked in the order of their ids, so that two workers never deadlock.
_LOCK = _bind(
    f"""
    select target.id, target.concurrency, target.drained_until, head.due_at
    from event_target target cross join lateral (
        select due_at from delivery_due
        where is_ready and bucket(organization_id) = bucket(:organization_id) and organization_id = :organization_id
            and target_id = target.id and due_at >= case when :is_complete then :epoch else target.drained_until end
        order by bucket(organization_id), organization_id, target_id, due_at limit 1
    ) head
    where target.organization_id = :organization_id and target.enabled and target.url is not null
        and target.organization_id {NOT_MOVING}
    order by target.id for no key update of target
    """  # noqa: S608
)

# From both ends of the queue: half of a share, an odd one at random, are the newest, if they are fresh; the rest are
# the oldest.
_CLAIM = _bind(
    """
    with share as (
        select wanted.target_id, wanted.head, least(:most, wanted.concurrency - (
            select count(*) from delivery_due
            where not is_ready and organization_id = :organization_id and target_id = wanted.target_id
                and lease_token is not null and due_at > :now
        )) as size, (random() < 0.5)::integer as odd
        from unnest(:targets, :limits, :heads) as wanted(target_id, concurrency, head)
    ), newest as (
        select share.target_id, due.id from share cross join lateral (
            select id from delivery_due
            where is_ready and bucket(organization_id) = bucket(:organization_id)
                and organization_id = :organization_id and target_id = share.target_id
                and due_at >= greatest(share.head, :fresh)
            order by bucket(organization_id) desc, organization_id desc, target_id desc, due_at desc
            limit greatest(0, (size + odd) / 2) for update skip locked
        ) due
    ), oldest as (
        select due.id from share cross join lateral (
            select id from delivery_due
            where is_ready and bucket(organization_id) = bucket(:organization_id)
                and organization_id = :organization_id and target_id = share.target_id and due_at >= share.head
                and id not in (select id from newest)
            order by bucket(organization_id), organization_id, target_id, due_at
            limit greatest(0, size - (select count(*) from newest where newest.target_id = share.target_id))
            for update skip locked
        ) due
    ), chosen as (
        select id from (select id from newest union all select id from oldest) ends order by random() limit :most
    ), claimed as (
        update delivery_due set is_ready = false, due_at = :now + make_interval(secs => :lease), lease_token = :token
        from chosen where delivery_due.id = chosen.id
        returning delivery_due.id, delivery_due.target_id
    ), drained as (
        update event_target target set drained_until = least(share.head, :fresh)
        from share where target.id = share.target_id
            and target.drained_until < least(share.head, :fresh) - interval '10 seconds'
    )
    select delivery.id, delivery.organization_id, delivery.target_id, target.kind, target.url, delivery.event_type,
        delivery.subject_id, delivery.body,
        (select wrapped from organization_key key where key.organization_id = delivery.organization_id
          and key.id = substring(delivery.body from '^sbt1[.]([0-9a-f]{32})[.]')::uuid),
        delivery.attempts, delivery.created_at, target.secret,
        case when target.previous_secret_expires_at > :now then target.previous_secret end, :token, share.size
    from claimed join share on share.target_id = claimed.target_id join delivery on delivery.id = claimed.id
        join event_target target on target.id = claimed.target_id
    """
).columns(body=ContentText())

_RECORD = _bind(
    """
    with result as (
        select * from unnest(:ids, :tokens, :statuses, :delays, :codes, :errors, :started, :durations)
            as result(id, token, status, delay, code, error, started_at, duration_ms)
    ), ended as (
        delete from delivery_due due using result
        where due.id = result.id and due.lease_token = result.token and result.status <> 'pending'
        returning due.id
    ), waiting as (
        update delivery_due due set is_ready = false, lease_token = null,
            due_at = :now + make_interval(secs => result.delay * (1 + :jitter * random()))
        from result where due.id = result.id and due.lease_token = result.token and result.status = 'pending'
        returning due.id
    ), changed as (
        update delivery set attempts = attempts + 1, status = result.status,
            next_attempt_at = :now + make_interval(secs => result.delay), last_status_code = result.code,
            last_error = result.error, delivered_at = case when result.status = 'delivered' then :now end
        from result join (select id from ended union all select id from waiting) held on held.id = result.id
        where delivery.id = result.id
        returning delivery.id, delivery.organization_id, delivery.target_id, delivery.attempts, delivery.status,
            result.code, result.error, result.started_at, result.duration_ms
    ), attempt as (
        insert into delivery_attempt (organization_id, delivery_id, number, started_at, duration_ms, status_code, error)
        select organization_id, id, attempts, started_at, duration_ms, code, error from changed
    )
    select id, target_id, status from changed
    """
)

# In the order of ids, so that two workers never deadlock. Failures while an endpoint is disabled do not count.
_LEARN = _bind(
    """
    with outcome as (
        select target.id, target.enabled, target.concurrency >> least(found.slow, 6) as halved, found.*,
            case when found.reset then 0 else target.consecutive_failures end
                + case when target.enabled and target.kind = 'endpoint' then found.failed else 0 end as failures
        from event_target target
            join unnest(:targets, :resets, :failed, :slow, :good) as found(target_id, reset, failed, slow, good)
                on found.target_id = target.id
        order by target.id for no key update of target
    ), learned as (
        select id, enabled, least(failures, :most_failures) as failures,
            greatest(1, least(:most_at_once, case when slow > 0 then halved else halved + good end))
                as concurrency
        from outcome
    )
    update event_target target
    set consecutive_failures = learned.failures, concurrency = learned.concurrency,
        enabled = target.enabled and (target.kind <> 'endpoint' or learned.failures < :most_failures),
        updated_at = case when target.enabled and target.kind = 'endpoint' and learned.failures >= :most_failures
          then :now else target.updated_at end
    from learned where target.id = learned.id
        and (target.consecutive_failures, target.concurrency) is distinct from (learned.failures, learned.concurrency)
    returning target.id, target.organization_id, learned.enabled and not target.enabled as is_disabled
    """
)

_HEADS = """
    with recursive heads as (
        (select bucket(organization_id) as bucket, organization_id, target_id, due_at from delivery_due where is_ready
        order by bucket(organization_id), organization_id, target_id, due_at limit 1)
        union all
        select next.* from heads cross join lateral (
            select bucket(organization_id), organization_id, target_id, due_at from delivery_due
            where is_ready and (bucket(organization_id), organization_id, target_id)
                > (heads.bucket, heads.organization_id, heads.target_id)
            order by bucket(organization_id), organization_id, target_id, due_at limit 1
        ) next
    )
"""
_CLOSED_TARGETS = _bind(
    f"""
    {_HEADS}
    select heads.organization_id, heads.target_id, target.id is null as is_deleted
    from heads left join event_target target on target.id = heads.target_id
    where (target.id is null or (not target.enabled or target.url is null) and heads.due_at < :before)
        and heads.organization_id {NOT_MOVING}
    """  # noqa: S608
)
_QUEUE_AGE = _bind(
    f"""
    {_HEADS}
    select coalesce(extract(epoch from max(:now - heads.due_at)), 0)::float8
    from heads join event_target target on target.id = heads.target_id
    where target.enabled and target.url is not null
    """  # noqa: S608
)

ENDED_DELIVERIES = ExpiringRows(Delivery, (col(Delivery.status) != "pending",))
HANDLED_EVENTS = ExpiringRows(Event, (~exists().where(col(DueEvent.id) == col(Event.id)),))
WAITING_DELIVERIES: Final = DueRows(DueDelivery, "due_at", (~col(DueDelivery.is_ready),))
"""Deliveries whose retry's time has come, or whose lease has lapsed."""

# By the two partial indexes of the queue.
_AWAITED = _bind(
    """
    select distinct delivery.subject_id from delivery where delivery.id in (
        select id from delivery_due
        where is_ready and bucket(organization_id) = bucket(:organization_id) and organization_id = :organization_id
        union all
        select id from delivery_due where not is_ready and organization_id = :organization_id
    )
    """
)


class OrganizationsToDeliver:
    """The organizations with a ready delivery to a target that receives deliveries."""

    def select(self, *, by_organization: bool) -> TextClause:
        """Select them, as `DueRows.select` does."""
        return _OPEN_ORGANIZATIONS


@dataclass(slots=True)
class Outcomes:
    """Outcomes of a target's attempts: how many deliveries have `failed` since the last success, whether there was one
    (`reset`), and how many attempts were `slow` or `good`.
    """

    reset: bool = False
    failed: int = 0
    slow: int = 0
    good: int = 0


async def make_ready(session: WriteSession) -> int:
    """Make deliveries ready whose retry's time has come, or whose lease has lapsed, a batch at most; return how many.
    A late result still counts until another worker has claimed its delivery.
    """
    waiting = WAITING_DELIVERIES.match(session.organization_id)
    found = select(DueDelivery.id).where(*waiting).limit(BATCH).with_for_update(skip_locked=True)
    ready = update(DueDelivery).where(col(DueDelivery.id).in_(found)).values(is_ready=True, due_at=now())
    return (await session.exec(ready)).rowcount


async def claim_deliveries(
    session: SystemSession, organization_id: UUID, *, most: int, lease: float
) -> tuple[list[ClaimedDelivery], bool]:
    """Claim ready deliveries of an organization for `lease` seconds, of each target half the newest and half the
    oldest, up to the target's limit, which the leases of all workers count toward.

    Returns them, and whether there may be more that wait for a place.
    """
    values = {"organization_id": organization_id, "is_complete": False, "epoch": EPOCH}
    targets = await session.fetch(_LOCK, values) or await session.fetch(_LOCK, {**values, "is_complete": True})
    if not targets:
        return [], False
    moment = now()
    values = {
        "organization_id": organization_id,
        "targets": [target.id for target in targets],
        "limits": [target.concurrency for target in targets],
        "heads": [target.due_at for target in targets],
        "fresh": moment - FRESH,
        "most": most,
        "token": new_id(),
        "lease": lease,
        "now": moment,
    }
    rows = await session.fetch(_CLAIM, values)
    claimed, shares = [ClaimedDelivery(*row[:-1]) for row in rows], {row.target_id: row.size for row in rows}
    counts = Counter(delivery.target_id for delivery in claimed)
    is_whole = len(claimed) < most and all(counts[target.id] < shares.get(target.id, 0) for target in targets)
    return claimed, not is_whole


async def release_leases(session: SystemSession, claimed: Sequence[ClaimedDelivery]) -> None:
    """Release leases: deliveries without a result are ready at once."""
    held = (
        is_among(col(DueDelivery.id), [delivery.id for delivery in claimed]),
        is_among(col(DueDelivery.lease_token), {delivery.token for delivery in claimed}),
    )
    await session.exec(update(DueDelivery).where(*held).values(is_ready=True, due_at=now(), lease_token=None))


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


async def learn_from_outcomes(session: SystemSession, outcomes: Mapping[UUID, Outcomes]) -> list[tuple[UUID, UUID]]:
    """Count consecutive failures of endpoints, and change the limits of targets: half of it for each attempt that cost
    time without a result, and one more for each good one.

    Returns the id and organization of each endpoint that was disabled.
    """
    values = {
        "targets": list(outcomes),
        "resets": [outcome.reset for outcome in outcomes.values()],
        "failed": [outcome.failed for outcome in outcomes.values()],
        "slow": [outcome.slow for outcome in outcomes.values()],
        "good": [outcome.good for outcome in outcomes.values()],
        "most_failures": MAX_FAILURES,
        "most_at_once": MOST_AT_ONCE,
        "now": now(),
    }
    return [(row.id, row.organization_id) for row in await session.fetch(_LEARN, values) if row.is_disabled]


async def list_closed_targets(session: SystemSession) -> list[tuple[UUID, UUID, bool]]:
    """List the targets that were deleted or have long received none of their ready deliveries: organization, target,
    and whether it was deleted.
    """
    # Retries of the last day may have been due later than their delivery was made.
    values = {"before": now() - WAIT + timedelta(days=1)}
    found = await session.fetch(_CLOSED_TARGETS, values)
    return [(row.organization_id, row.target_id, row.is_deleted) for row in found]


async def measure_queue_age(session: SystemSession) -> float:
    """Return for how many seconds the oldest due delivery has been waiting for a worker."""
    ((age,),) = await session.fetch(_QUEUE_AGE, {"now": now()})
    return float(age)


async def list_undelivered_subjects(session: ReadSession) -> list[UUID]:
    """List the ids of the calls, text messages, and simulations that pending deliveries are about."""
    rows = await session.fetch(_AWAITED, {"organization_id": session.organization_id})
    return [row.subject_id for row in rows]
