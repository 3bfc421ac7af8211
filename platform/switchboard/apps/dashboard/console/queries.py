"""Queries of the operator console across organizations: counts, amounts, and names, never the content of a call or of a
text message.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, TypeAlias, TypeVar
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import text
from sqlmodel import col, select

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, is_among, now
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.identity.models import Membership, Organization, User

SortOrder: TypeAlias = Literal["name", "newest", "cost", "calls", "live_calls", "balance"]
ORDERS: Final[Mapping[SortOrder, str]] = {
    "name": "lower(organization.name)",
    "newest": "organization.created_at desc",
    "cost": "cost desc",
    "calls": "calls desc",
    "live_calls": "live_calls desc",
    "balance": "balance",
}
ItemT = TypeVar("ItemT", bound=BaseModel)
RowT = TypeVar("RowT", Organization, User)
LIVE_SECONDS: Final = 5
"""Seconds between two renderings of the console's live parts, whose queries read the calls of all organizations."""
FAILURES_PERIOD: Final = timedelta(hours=1)
MAX_FAILURES: Final = 50

# Of a sort by name, PostgreSQL computes the figures of the organizations on the page alone.
_ORGANIZATIONS = """
select organization.id, organization.name, organization.slug, organization.suspended_at,
  organization.policy ->> 'billing_mode' as billing_mode,
  coalesce((select balance from account where account.organization_id = organization.id), 0) as balance,
  (select count(*) from call where call.organization_id = organization.id and created_at >= :since) as calls,
  coalesce((select sum(duration_seconds) from call
    where call.organization_id = organization.id and created_at >= :since), 0)::float8 / 60 as minutes,
  (select count(*) from call where call.organization_id = organization.id and ended_at is null) as live_calls,
  coalesce((select -sum(amount) from ledger_entry
    where ledger_entry.organization_id = organization.id and kind <> 'credit' and created_at >= :since), 0) as cost
from organization
where strpos(lower(organization.name), :search) > 0 or strpos(lower(coalesce(organization.slug, '')), :search) > 0
  or organization.id::text = :search
order by {order}, organization.id limit :limit offset :offset
"""
_COUNT_ORGANIZATIONS = """
select count(*) from organization
where strpos(lower(name), :search) > 0 or strpos(lower(coalesce(slug, '')), :search) > 0 or id::text = :search
"""
_TOTALS = """
select (select count(*) from organization) as organizations,
  (select count(*) from organization where suspended_at is not null) as suspended,
  (select count(*) from user_account) as users,
  (select count(*) from call where ended_at is null) as live_calls
"""
_QUEUES = """
select queue, waiting, extract(epoch from now() - oldest)::float8 as seconds from (
  select 'Calls to dial', count(*), min(created_at) from call
    where ended_at is null and status = 'queued' and dialing_at is null
  union all select 'Calls without progress', count(*), min(watch_at) from call
    where watch_at < now() and (status <> 'queued' or dialing_at is not null)
  union all select 'Analyses of calls', count(*), min(analysis_due_at) from call where analysis_due_at < now()
  union all select 'Recordings to find', count(*), min(recording_due_at) from call where recording_due_at < now()
  union all select 'Text messages without progress', count(*), min(watch_at) from sms_message where watch_at < now()
  union all select 'Answers to text messages', count(*), min(reply_due_at) from sms_conversation
    where reply_due_at < now()
  union all select 'Files of text messages', count(*), min(fetch_due_at) from sms_media where fetch_due_at < now()
  union all select 'Webhook deliveries', count(*), min(due_at) from delivery_due where due_at < now()
  union all select 'Automation runs', count(*), min(due_at) from automation_run where due_at < now()
  union all select 'Campaigns', count(*), min(due_at) from campaign where due_at < now()
  union all select 'Events for plugins', count(*), min(watch_due_at) from event_due where watch_due_at < now()
  union all select 'Triggers of automations', count(*), min(trigger_due_at) from event_due where trigger_due_at < now()
  union all select 'Documents', count(*), min(process_after) from knowledge_document
    where status = 'processing' and process_after < now()
  union all select 'Privacy requests', count(*), min(due_at) from privacy_request where due_at < now()
  union all select 'Simulations', count(*), min(due_at) from simulation where due_at < now()
) work (queue, waiting, oldest) order by waiting desc, queue
"""
_FAILURES = """
select organization.id as organization_id, organization.name as organization,
  failure ->> 'capability' as capability, failure ->> 'provider' as provider,
  sum((failure ->> 'count')::int)::int as failures, count(*)::int as calls, max(failed.created_at) as last_at
from organization cross join lateral (
  select created_at, provider_failures from call
  where call.organization_id = organization.id and created_at > :since and provider_failures <> '[]'
) failed cross join lateral jsonb_array_elements(failed.provider_failures) failure
where (cast(:organization_id as uuid) is null or organization.id = :organization_id)
group by 1, 2, 3, 4 order by failures desc limit :limit
"""
_USERS = """
select user_account.id, user_account.email, user_account.is_superadmin,
  user_account.email_verified_at is not null as is_email_verified,
  (select count(*) from user_session where user_session.user_id = user_account.id) as sessions,
  exists (select from authenticator_app where authenticator_app.user_id = user_account.id) as has_second_factor
from user_account where strpos(email, :search) > 0
order by email limit :limit offset :offset
"""
_COUNT_USERS = "select count(*) from user_account where strpos(email, :search) > 0"


class OrganizationFigures(BaseModel):
    """An organization in the operator's list. Calls, minutes, and cost (US dollars) are those of this month in UTC."""

    id: UUID
    name: str
    slug: str | None
    suspended_at: datetime | None
    billing_mode: str | None
    balance: Decimal
    calls: int
    minutes: float
    live_calls: int
    cost: Decimal


class InstallationTotals(BaseModel):
    organizations: int
    suspended: int
    users: int
    live_calls: int


class QueueDepth(BaseModel):
    """Rows that wait for a worker, and for how many seconds the oldest has been due; None if nothing waits."""

    queue: str
    waiting: int
    seconds: float | None


class FailingProvider(BaseModel):
    """Failures of an organization's provider in the calls of the last hour."""

    organization_id: UUID
    organization: str
    capability: str
    provider: str
    failures: int
    calls: int
    last_at: datetime


class UserFigures(BaseModel):
    """A user in the operator's list."""

    id: UUID
    email: str
    is_superadmin: bool
    is_email_verified: bool
    sessions: int
    has_second_factor: bool


@dataclass(frozen=True, slots=True)
class ConsoleQueries:
    """Reads of the operator console across organizations, and its entries in their audit logs."""

    database: Database

    async def list_organizations(self, search: str, sort: SortOrder, query: PageQuery) -> Page[OrganizationFigures]:
        """List the organizations whose name, slug, or id is searched for."""
        month = now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        statement = _ORGANIZATIONS.format(order=ORDERS[sort])
        return await self._list(OrganizationFigures, statement, _COUNT_ORGANIZATIONS, search, query, since=month)

    async def get(self, model: type[RowT], row_id: UUID) -> RowT:
        """Return an organization or a user. Raises `NotFound`."""
        async with self.database.system() as session:
            if (found := await session.get(model, row_id)) is None:
                raise NotFound
            return found

    async def count_all(self) -> InstallationTotals:
        """Count organizations, suspended ones, users, and live calls."""
        return (await self._read(InstallationTotals, _TOTALS))[0]

    async def list_queues(self) -> list[QueueDepth]:
        """List the queues of the workers, the longest first."""
        return await self._read(QueueDepth, _QUEUES)

    async def list_failing_providers(self, organization_id: UUID | None = None) -> list[FailingProvider]:
        """List providers that failed in calls of the last hour, of one organization or of all, most failures first."""
        values = {"since": now() - FAILURES_PERIOD, "organization_id": organization_id, "limit": MAX_FAILURES}
        return await self._read(FailingProvider, _FAILURES, **values)

    async def list_users(self, search: str, query: PageQuery) -> Page[UserFigures]:
        """List the users whose e-mail address contains the text, by address."""
        return await self._list(UserFigures, _USERS, _COUNT_USERS, search, query)

    async def list_memberships(self, user_ids: list[UUID]) -> dict[UUID, list[tuple[UUID, str, str]]]:
        """Return the id and name of each user's organizations with the user's role there, by the user's id."""
        rows = select(Membership.user_id, Organization.id, Organization.name, Membership.role).join(
            Organization, col(Organization.id) == col(Membership.organization_id)
        )
        found: dict[UUID, list[tuple[UUID, str, str]]] = defaultdict(list)
        async with self.database.system() as session:
            for user_id, organization_id, name, role in await session.exec(
                rows.where(is_among(col(Membership.user_id), user_ids)).order_by(Organization.name)
            ):
                found[user_id].append((organization_id, name, role))
        return found

    async def record_for_user(self, user_id: UUID, actor: str, action: AuditAction) -> None:
        """Record a change of a user in the audit log of each of the user's organizations."""
        memberships = (await self.list_memberships([user_id])).get(user_id, [])
        async with self.database.system() as session:
            for organization_id, _, _ in memberships:
                record_audit_as(session, organization_id, actor, action, user_id)

    async def _list(
        self, kind: type[ItemT], statement: str, count: str, search: str, query: PageQuery, **values: object
    ) -> Page[ItemT]:
        wanted, limit, offset = search.strip().lower(), query.limit, query.offset
        items = await self._read(kind, statement, search=wanted, limit=limit, offset=offset, **values)
        async with self.database.system() as session:
            ((total,),) = await session.fetch(text(count), {"search": wanted})
        return Page(items=items, total=int(total), limit=limit, offset=offset)

    async def _read(self, kind: type[ItemT], statement: str, **values: object) -> list[ItemT]:
        async with self.database.system() as session:
            return [
                kind.model_validate(row, from_attributes=True) for row in await session.fetch(text(statement), values)
            ]
