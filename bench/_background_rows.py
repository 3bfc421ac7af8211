"""Rows of an installation with a history, for `bench/scale`.

Rows are inserted by the owner with the platform's triggers, so that whatever counts rows counts these, too. A list gets
its rows by one statement each, as in operation: a conversation of ten messages has been written ten times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import sqlalchemy
from sqlalchemy import func, literal, literal_column, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlmodel import SQLModel
from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import create_engine, new_id
from switchboard.foundation.events.models import Delivery, Event, EventTarget
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns.models import Campaign, CampaignContact
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import OutboundLimits, Policy, RateLimit, RateLimits, Retention
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms.models import SmsConversation, SmsMessage

ORGANIZATIONS, TARGETS = 100, 1_000
DELIVERIES_OF_A_TARGET, CONVERSATIONS, MESSAGES_OF_A_CONVERSATION = 55, 2_000, 10
EVENTS, CALLS, AUDIT_ENTRIES, CAMPAIGNS, CONTACTS_OF_A_CAMPAIGN = 10_000, 5_000, 5_000, 50, 100
RETRIED, OVERDUE = 6, 10
"""Latest deliveries of half of the targets that wait for a retry, and of a disabled target that are overdue."""
HISTORY_DAYS: Final = 25
"""Fewer than the 30 days of events that organizations keep, so that retention has nothing to delete."""
NO_ID: Final = UUID(int=0)
NUMBER: Final = "'+1' || (2000000000 + g)"
ENDS: Final = {"from_number": "+15550100001", "to_number": "+15550100002"}
SETTINGS: Final = AgentSettings(llm_provider="a", tts_provider="b", stt_provider="c")
PREPARE: Final = (
    "alter system set autovacuum = off",
    "alter system set max_wal_size = '8GB'",
    "alter system set checkpoint_timeout = '1h'",
    "select pg_reload_conf()",
)
ADD_TO_QUEUE: Final = """
insert into delivery_due (id, organization_id, created_at, target_id, due_at, is_ready)
select id, organization_id, created_at, target_id, next_attempt_at, next_attempt_at < now() from delivery
where status = 'pending'
"""
UUIDV7: Final = "uuidv7()"


def build_policy() -> Policy:
    """Build a policy whose retention is asked of every kind of data, and whose limits are never reached."""
    unlimited, kept = RateLimit(per_second=100_000, burst=1_000_000), 365
    return Policy(
        rate_limits=RateLimits(read=unlimited, write=unlimited),
        retention=Retention(
            calls=kept, recordings=kept, transcripts=kept, messages=kept, appointments=kept, events=30, audit=kept
        ),
        outbound_limits=OutboundLimits(calls_per_hour=1_000_000),
        max_concurrent_calls=100_000,
    )


def derive_id(kind: str, number: str) -> str:
    """Return SQL for the id of the row of a kind with a number, which is SQL, too."""
    return f"md5('{kind}' || ({number}))::uuid"


@dataclass(frozen=True, slots=True)
class Filler:
    """Inserts rows. `size` multiplies organizations, targets, and rows."""

    connection: AsyncConnection
    size: int

    async def insert(self, row: SQLModel, count: int, varying: Mapping[str, str], *, first: int = 0) -> None:
        """Insert copies of a row in one statement; `varying` has SQL by column, in which `g` is the row's number."""
        table: sqlalchemy.Table = row.__table__  # type: ignore[attr-defined]
        values = {column.name: getattr(row, column.name) for column in table.columns}
        chosen = [
            literal_column(varying[name]) if name in varying else literal(value, table.columns[name].type)
            for name, value in values.items()
        ]
        rows = sqlalchemy.select(*chosen).select_from(func.generate_series(first, first + count - 1).alias("g"))
        await self.connection.execute(sqlalchemy.insert(table).from_select(list(values), rows))
        await self.connection.commit()

    async def fill(self) -> None:
        """Insert everything."""
        await self._add_organizations()
        await self._add_deliveries()
        await self._add_messages()
        await self._add_history()

    async def _add_organizations(self) -> None:
        count = ORGANIZATIONS * self.size
        by_number = {"organization_id": derive_id("organization", "g"), "created_at": "now() - interval '1 year'"}
        organization = Organization(name="Bench", policy=build_policy())
        await self.insert(organization, count, {"id": by_number["organization_id"]})
        agent = Agent(organization_id=NO_ID, name="Agent", settings=SETTINGS)
        await self.insert(agent, count, {"id": derive_id("agent", "g"), **by_number})
        number = PhoneNumber(
            organization_id=NO_ID, phone_number="", friendly_name="Number", carrier="loopback", status="active"
        )
        numbers = {"phone_number": NUMBER, "billed_until": "now() + interval '20 days'"}
        await self.insert(number, count, {"id": derive_id("number", "g"), **numbers, **by_number})

    async def _add_deliveries(self) -> None:
        """Add targets, of which one in twenty is disabled, and their deliveries, the oldest first."""
        targets = TARGETS * self.size
        owned = {"organization_id": derive_id("organization", f"g / {TARGETS // ORGANIZATIONS}")}
        target = EventTarget(organization_id=NO_ID, kind="endpoint", url="https://example.com")
        await self.insert(target, targets, {"id": derive_id("target", "g"), "enabled": "g % 20 <> 19", **owned})
        delivery = Delivery(
            organization_id=NO_ID,
            target_id=NO_ID,
            target_kind="endpoint",
            event_type="call.completed",
            subject_id=new_id(),
        )
        for age in range(DELIVERIES_OF_A_TARGET - 1, -1, -1):
            is_overdue, is_retried = f"g % 20 = 19 and {age} < {OVERDUE}", f"g % 2 = 0 and {age} < {RETRIED}"
            due = f"case when {is_overdue} then now() - interval '1 hour' when {is_retried} then now() + g % 3600 * "
            due += "interval '1 second' + interval '1 hour' end"
            values = {
                "id": UUIDV7,
                "created_at": f"now() - {age} * interval '10 hours'",
                "target_id": derive_id("target", "g"),
                "body": '\'{"type": "call.completed"}\'',
                "status": f"case when ({is_overdue}) or ({is_retried}) then 'pending' else 'delivered' end",
                "attempts": "1",
                "next_attempt_at": due,
            }
            await self.insert(delivery, targets, values | owned)
        await self.connection.execute(text(ADD_TO_QUEUE))
        await self.connection.commit()

    async def _add_messages(self) -> None:
        conversations = CONVERSATIONS * self.size
        owner = f"g / {CONVERSATIONS // ORGANIZATIONS}"
        owned = {"organization_id": derive_id("organization", owner)}
        conversation = SmsConversation(organization_id=NO_ID, phone_number_id=NO_ID, contact_number="")
        names = {"id": derive_id("conversation", "g"), "contact_number": NUMBER}
        names["phone_number_id"] = derive_id("number", owner)
        await self.insert(conversation, conversations, names | owned)
        message = SmsMessage(
            organization_id=NO_ID,
            conversation_id=NO_ID,
            direction="inbound",
            status="received",
            author="contact",
            segments=1,
            carrier="loopback",
            **ENDS,
        )
        for age in range(MESSAGES_OF_A_CONVERSATION - 1, -1, -1):
            values = {
                "id": UUIDV7,
                "created_at": f"now() - {age} * interval '2 days'",
                "conversation_id": derive_id("conversation", "g"),
                "body": "'Hello'",
                "unsent_body": "null",
                "media_urls": "'[]'",
            }
            await self.insert(message, conversations, values | owned)

    async def _add_history(self) -> None:
        """Add events, calls, entries of the audit log, and campaigns that are over, with their contacts."""
        for row, count, varying in build_history():
            total = count * self.size
            moment = f"now() - (1 - g / {total}.0) * interval '{HISTORY_DAYS} days'"
            owned = {"id": UUIDV7, "organization_id": derive_id("organization", f"g % {ORGANIZATIONS * self.size}")}
            await self.insert(row, total, {**owned, "created_at": moment, **varying})
        organizations = ORGANIZATIONS * self.size
        campaign = Campaign(
            organization_id=NO_ID,
            name="Campaign",
            agent_id=NO_ID,
            phone_number_id=NO_ID,
            max_concurrent=5,
            status="completed",
        )
        named = {"id": derive_id("campaign", "g"), "organization_id": derive_id("organization", f"g % {organizations}")}
        await self.insert(campaign, CAMPAIGNS * self.size, named)
        contact = CampaignContact(organization_id=NO_ID, campaign_id=NO_ID, phone_number="", status="completed")
        parent = f"g / {CONTACTS_OF_A_CAMPAIGN}"
        under = {"id": UUIDV7, "phone_number": NUMBER, "campaign_id": derive_id("campaign", parent)}
        under["organization_id"] = derive_id("organization", f"{parent} % {organizations}")
        await self.insert(contact, CAMPAIGNS * CONTACTS_OF_A_CAMPAIGN * self.size, under)


def build_history() -> list[tuple[SQLModel, int, dict[str, str]]]:
    """Build sample rows of the history, each with its number and what varies."""
    org: dict[str, Any] = {"organization_id": NO_ID}
    event = Event(name="call.completed", **org)
    entry = AuditEntry(actor="system", action="call.created", subject="", **org)
    content = {"call_summary": "null", "extracted_data": "'{}'", "call_metadata": "'{}'", "prompt_variables": "null"}
    moments = {"ended_at": f"now() - (1 - g / 1e9) * interval '{HISTORY_DAYS} days'", "carrier_call_id": "g::text"}
    return [
        (event, EVENTS, {"data": "'{}'"}),
        (build_call("completed"), CALLS, content | moments),
        (entry, AUDIT_ENTRIES, {}),
    ]


def build_call(status: str) -> Call:
    return Call(organization_id=NO_ID, direction="outbound", status=status, carrier="loopback", **ENDS)


async def fill(url: str, size: int) -> None:
    """Fill the database to a size, and gather the planner's statistics."""
    engine = create_engine(url)
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        for statement in PREPARE:
            await autocommit.execute(text(statement))
    async with engine.connect() as connection:
        await connection.execute(text("set synchronous_commit = off"))
        await Filler(connection, size).fill()
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.execute(text("vacuum analyze"))
        await autocommit.execute(text("checkpoint"))
    await engine.dispose()
