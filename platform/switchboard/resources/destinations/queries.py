"""Statements about the rules for outbound calls and text messages, and about the counts that limits compare."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, DateTime, Integer, Row, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select

from switchboard.foundation.database import ReadSession, SystemSession, WriteSession, now
from switchboard.resources.destinations.models import LimitCounter, LimitCounterChange, OutboundPause
from switchboard.resources.identity.models import Organization

_RULES: Final = (
    select(Organization.narrowed_destinations, Organization.suspended_at, Organization.moving_since, OutboundPause)
    .outerjoin(OutboundPause, col(OutboundPause.organization_id) == col(Organization.id))
    .where(col(Organization.id) == bindparam("organization_id"))
    .execution_options(populate_existing=True)  # another transaction may have written a pause
)


async def get_restrictions(
    session: ReadSession,
) -> tuple[Mapping[str, Any] | None, datetime | None, datetime | None, OutboundPause | None]:
    """Return what the organization's owners close, the times of its suspension and of its move, and its last pause."""
    return (await session.exec(_RULES, params={"organization_id": session.organization_id})).one()


async def replace_pause(session: WriteSession, pause: OutboundPause, *, last: OutboundPause | None) -> bool:
    """Save a pause in place of the last one; return whether it was saved.

    Of several transactions that reach the limit at once, one writes the pause.
    """
    fresh = pause.model_dump()
    unchanged = col(OutboundPause.paused_at) == (last.paused_at if last else None)
    written = await session.exec(
        insert(OutboundPause)
        .values(fresh)
        .on_conflict_do_update(index_elements=["organization_id"], set_=fresh, where=unchanged)
    )
    return bool(written.rowcount)


# Counts that limits compare (`LimitCounter`). A trigger of what is counted writes a change in the same transaction, so
# that writers do not wait for each other; who finds many changes merges them.

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
MANY_CHANGES: Final = 100
"""Changes beyond which they are merged into the counters; fewer are read in less time than a row is written."""
_PARTS: Final = """
    with change as (
      select moment, name, number, amount from limit_counter_change
      where organization_id = :organization_id and subject_id = :subject_id
    ), part as (
      select moment, name, number, amount from limit_counter
      where organization_id = :organization_id and subject_id = :subject_id and moment >= :since
      union all select * from change where moment >= :since
    )"""
# What talks now has talked for the whole time, except that each begin within the time was so much later than `since`,
# and each end so much earlier than now.
_COUNTS: Final = f"""{_PARTS}, counted as (
      select (select count(*) from change) as changes,
        coalesce(sum(number) filter (where name = 'running'), 0)::bigint as running,
        coalesce(sum(number) filter (where name = 'begun'), 0)::bigint as begun,
        coalesce(sum(number) filter (where name = 'texts'), 0)::bigint as texts,
        coalesce(sum(amount) filter (where name = 'spent'), 0) as spent,
        coalesce(sum(amount) filter (where name = 'held'), 0) as held,
        coalesce(sum(case moment when 'infinity' then number * extract(epoch from :now - :since)
          else number * extract(epoch from :since) - amount end) filter (where name = 'talking'), 0) / 60 as talked
      from part
    )
    select counted.*, organization.suspended_at is not null as is_suspended,
      organization.moving_since is not null as is_moving, outbound_pause.*
    from counted, organization left join outbound_pause on outbound_pause.organization_id = organization.id
    where organization.id = :organization_id"""  # noqa: S608
_COUNTS_OF_WIDGET: Final = f"""{_PARTS}
    select (select count(*) from change) as changes,
      coalesce(sum(number) filter (where name = 'conversations'), 0)::bigint as conversations,
      coalesce(sum(amount) filter (where name = 'conversations'), 0) as spent,
      coalesce(sum(number) filter (where name = 'conversations' and moment = 'infinity'
        or name = 'unannounced' and moment >= :unannounced_since), 0)::bigint as lasting,
      coalesce(sum(number) filter (where name = 'talking'), 0)::bigint as talking,
      coalesce(sum(number * extract(epoch from :now) - amount) filter (where name = 'talking'), 0) / 60 as talked
    from part"""  # noqa: S608
# Of an organization one transaction at a time, the others go on without: none waits, so that the order in which
# transactions change counters and lock other rows does not matter. What is too old for a limit is deleted.
_IS_OLD: Final = "moment < case when subject_id = organization_id or name = 'unannounced' then :hour else :day end"
_MERGE: Final = f"""
    with ours as materialized ([organizations]), mine as materialized (
      select organization_id from ours
      where pg_try_advisory_xact_lock(hashtextextended('limit counters of ' || organization_id, 0))
    ), taken as (
      delete from limit_counter_change where organization_id in (select organization_id from mine) returning *
    ), merged as (
      insert into limit_counter as kept (organization_id, subject_id, moment, name, number, amount)
      select organization_id, subject_id, moment, name, sum(number), sum(amount) from taken
      where not {_IS_OLD} group by 1, 2, 3, 4 having sum(number) <> 0 or sum(amount) <> 0
      on conflict (organization_id, subject_id, moment, name) do update
      set number = kept.number + excluded.number, amount = kept.amount + excluded.amount
    ), old as (delete from limit_counter where organization_id in (select organization_id from mine) and {_IS_OLD})
    select count(distinct organization_id) from taken"""  # noqa: S608


def _bind(statement: str) -> TextClause:
    names = [name for name in ("now", "since", "unannounced_since", "hour", "day") if f":{name}" in statement]
    return text(statement).bindparams(*(bindparam(name, type_=DateTime(timezone=True)) for name in names))


_READ: Final = _bind(_COUNTS)
_READ_OF_WIDGET: Final = _bind(_COUNTS_OF_WIDGET)
_MERGE_OWN: Final = _bind(_MERGE.replace("[organizations]", "select cast(:organization_id as uuid) as organization_id"))
_MERGE_ALL: Final = _bind(
    _MERGE.replace(
        "[organizations]",
        "select distinct organization_id from limit_counter_change "
        "where bucket(organization_id) = any(:buckets) limit :most",
    )
).bindparams(bindparam("buckets", type_=ARRAY(Integer)))


async def read_counts(session: ReadSession) -> tuple[Row[*tuple[Any, ...]], OutboundPause | None]:
    """Return the numbers that the organization's limits compare, and its last pause; None if it never paused.

    They are `running`, `held`, and of the last hour, from the beginning of its first minute: `begun`, `talked` in
    minutes, `texts`, and `spent`; and `is_suspended`, `is_moving`, and the number of `changes` that are not merged.
    """
    moment, organization_id = now(), session.organization_id
    values = {"organization_id": organization_id, "subject_id": organization_id, "now": moment}
    (found,) = await session.fetch(_READ, {**values, "since": _begin_spans(moment)["hour"]})
    pause = {name: getattr(found, name) for name in OutboundPause.model_fields}
    return found, OutboundPause(**pause) if found.organization_id is not None else None


async def read_counts_of_widget(
    session: ReadSession, widget_id: UUID, *, announced_within: timedelta
) -> Row[*tuple[Any, ...]]:
    """Return the numbers that a widget's limits compare.

    They are its `conversations` of the last 24 hours, from the beginning of the first, and what they have `spent`; the
    `lasting` ones among them, with those that are unannounced and younger than `announced_within`; the calls among them
    that are `talking` and the minutes that these have `talked`; and the number of `changes` that are not merged.
    """
    moment = now()
    values = {
        "organization_id": session.organization_id,
        "subject_id": widget_id,
        "now": moment,
        "since": _begin_spans(moment)["day"],
        "unannounced_since": (moment - announced_within).replace(microsecond=0),
    }
    (found,) = await session.fetch(_READ_OF_WIDGET, values)
    return found


async def merge_own_limit_counts(session: WriteSession) -> None:
    """Merge the changes of the organization's counters, unless another transaction does."""
    await session.fetch(_MERGE_OWN, {"organization_id": session.organization_id, **_begin_spans(now())})


async def merge_limit_counts(session: SystemSession, *, buckets: Collection[int], most: int) -> int:
    """Merge the changes of counters of organizations in these buckets, so many at most; return of how many."""
    values = {"buckets": list(buckets), "most": most, **_begin_spans(now())}
    return int((await session.fetch(_MERGE_ALL, values))[0][0])


def _begin_spans(moment: datetime) -> dict[str, datetime]:
    """Return the beginnings of the last hour's first minute, and of the last day's first hour."""
    return {
        "hour": (moment - HOUR).replace(second=0, microsecond=0),
        "day": (moment - DAY).replace(minute=0, second=0, microsecond=0),
    }


async def delete_limit_counts(session: SystemSession, organization_id: UUID) -> None:
    """Delete the counters of an organization whose rows are gone; no foreign key does it, for the sake of writers."""
    for kept in (LimitCounter, LimitCounterChange):
        await session.exec(delete(kept).where(col(kept.organization_id) == organization_id))
