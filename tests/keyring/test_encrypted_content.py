"""Texts of conversations under a key of their organization: plain for clients, and unreadable in the database."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import Executable
from sqlalchemy.exc import InvalidRequestError, StatementError
from sqlmodel import col, insert, select, update
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import now
from switchboard.foundation.encryption.content import UNREADABLE, Content, open_content, seal_content
from switchboard.foundation.encryption.organization_keys import OrganizationKey
from switchboard.foundation.encryption.rotation import (
    delete_unused_content_keys,
    reencrypt_content,
    retire_content_key,
)
from switchboard.foundation.keyring import KeyRing
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call, add_line
from tests.fixtures.campaigns import create_agent_and_number
from tests.fixtures.command_line import Operator
from tests.fixtures.dashboard import People
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import at

WORDS = "The spare key lies under the third flowerpot."
"""A sentence that people say, write, and that an analysis repeats."""


@pytest_asyncio.fixture
async def caller(organizations: Organizations) -> Caller:
    return await organizations.create(policy=Policy(encryption=Encryption(texts=True)))


async def set_encryption(runtime: Runtime, caller: Caller, *, texts: bool) -> None:
    async with runtime.database.write(caller.organization_id) as session, runtime.database.system() as system:
        del session
        organization = await system.get_one(Organization, caller.organization_id)
        organization.policy = Policy(encryption=Encryption(texts=texts))


async def plant(runtime: Runtime, caller: Caller) -> tuple[Call, SmsMessage]:
    """Write the sentence into a transcript, an analysis, and a text message."""
    call = await add_call(
        runtime, caller, now(), call_summary=WORDS, extracted_data={"place": WORDS}, call_metadata={"note": WORDS}
    )
    number_id = (await create_agent_and_number(runtime, caller))["phone_number_id"]
    async with runtime.database.write(caller.organization_id) as session:
        await add_line(session, call.id, WORDS)
        conversation = SmsConversation(
            organization_id=caller.organization_id, phone_number_id=UUID(str(number_id)), contact_number="+15550100001"
        )
        session.add(conversation)
        await session.flush()
        message = SmsMessage(
            organization_id=caller.organization_id,
            conversation_id=conversation.id,
            direction="inbound",
            from_number="+15550100001",
            to_number="+15550100002",
            body=Content(WORDS),
            status="received",
            author="contact",
            segments=1,
            carrier="loopback",
        )
        await seal_content(session, message)
        session.add(message)
    return call, message


async def read_through_api(caller: Caller, call: Call, message: SmsMessage) -> list[object]:
    """Read every text that `plant` wrote as a client does."""
    found = (await caller.get(f"/v1/calls/{call.id}")).json
    transcript = await caller.get(f"/v1/calls/{call.id}/transcript")
    messages = await caller.get(f"/v1/sms/conversations/{message.conversation_id}/messages")
    assert (transcript.status, messages.status) == (200, 200)
    return [
        found["call_summary"],
        found["extracted_data"],
        found["metadata"],
        at(transcript.json, "items", 0, "content"),
        at(messages.json, "items", 0, "body"),
    ]


PLAIN = [WORDS, {"place": WORDS}, {"note": WORDS}, WORDS, WORDS]


STORED = """
select call_summary from call where organization_id = $1
union all select extracted_data #>> '{}' from call where organization_id = $1
union all select call_metadata #>> '{}' from call where organization_id = $1
union all select content from transcript_line where organization_id = $1
union all select body from sms_message where organization_id = $1
"""


@pytest_asyncio.fixture
async def administrator(servers: DataDirectory) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(host=str(servers.sockets), user="switchboard", database="switchboard")
    yield connection
    await connection.close()


async def read_stored(administrator: asyncpg.Connection, caller: Caller) -> list[str]:
    """Read the texts as the database's administrator does."""
    return [row[0] for row in await administrator.fetch(STORED, caller.organization_id)]


def reencrypt(operator: Operator, caller: Caller, *options: str) -> tuple[int, int]:
    """Run the command; return the numbers of rows that it wrote again, and of keys that it deleted."""
    report = operator.ask("keys", "reencrypt", "--org", str(caller.organization_id), *options)
    return int(report["rewritten"]), int(report["deleted_keys"])


async def list_keys(runtime: Runtime, caller: Caller) -> dict[str, UUID]:
    async with runtime.database.write(caller.organization_id) as session:
        return {key.purpose: key.id for key in (await session.exec(session.select(OrganizationKey))).all()}


async def test_clients_read_what_was_said_and_the_database_has_nothing_of_it(
    runtime: Runtime, caller: Caller, administrator: asyncpg.Connection, people: People
) -> None:
    call, message = await plant(runtime, caller)
    assert await read_through_api(caller, call, message) == PLAIN
    stored = await read_stored(administrator, caller)
    assert len(stored) == len(PLAIN)
    assert len(set(stored)) == len(stored)
    assert all(text.startswith("sbt1.") and "flowerpot" not in text for text in stored)
    member = await people.join(caller.organization_id)
    assert WORDS in (await member.get(f"/dashboard/calls/{call.id}")).html


async def test_texts_from_before_and_after_the_setting_are_read_side_by_side(
    runtime: Runtime, caller: Caller, administrator: asyncpg.Connection
) -> None:
    await set_encryption(runtime, caller, texts=False)
    before = await plant(runtime, caller)
    assert [text for text in await read_stored(administrator, caller) if "flowerpot" not in text] == []
    await set_encryption(runtime, caller, texts=True)
    assert await read_through_api(caller, *before) == PLAIN
    async with runtime.database.write(caller.organization_id) as session:
        call = await session.get_one(Call, before[0].id)
        call.call_summary = Content(f"{WORDS} Again.")
        await seal_content(session, call)
    assert (await caller.get(f"/v1/calls/{call.id}")).json["call_summary"] == f"{WORDS} Again."
    stored = await read_stored(administrator, caller)
    assert [text.startswith("sbt1.") for text in stored] == [True, False, False, False, False]


async def test_an_altered_or_moved_text_is_named_and_hides_no_other(
    runtime: Runtime, caller: Caller, administrator: asyncpg.Connection
) -> None:
    call, message = await plant(runtime, caller)
    other, _ = await plant(runtime, caller)
    moved = "update call set call_summary = (select call_summary from call where id = $2) where id = $1"
    altered = "update sms_message set body = overlay(body placing 'xxxx' from 60) where id = $1"
    await administrator.execute(moved, call.id, other.id)
    await administrator.execute(altered, message.id)
    assert await read_through_api(caller, call, message) == [
        UNREADABLE,
        {"place": WORDS},
        {"note": WORDS},
        WORDS,
        UNREADABLE,
    ]


async def test_a_text_that_looks_encrypted_is_stored_and_read_as_any_other(runtime: Runtime, caller: Caller) -> None:
    forged = f"sbt1.{'0' * 32}.{'A' * 60}"
    call = await add_call(runtime, caller, now(), call_summary=forged)
    assert (await caller.get(f"/v1/calls/{call.id}")).json["call_summary"] == forged
    similar = await add_call(runtime, caller, now(), call_summary="sbt1.is a strange beginning")
    assert (await caller.get(f"/v1/calls/{similar.id}")).json["call_summary"] == "sbt1.is a strange beginning"


async def test_shredded_texts_say_so_and_later_ones_are_read(
    runtime: Runtime, caller: Caller, operator: Operator, people: People
) -> None:
    call, message = await plant(runtime, caller)
    operator.ask("keys", "shred", "--org", str(caller.organization_id), "--yes")
    lost = {"unreadable": UNREADABLE}
    gone = [UNREADABLE, lost, lost, UNREADABLE, UNREADABLE]
    assert await read_through_api(caller, call, message) == gone
    member = await people.join(caller.organization_id)
    for path in (f"calls/{call.id}", "calls", "texts", f"texts/{message.conversation_id}"):
        assert (await member.get(f"/dashboard/{path}")).status == 200, path
    later = await plant(runtime, caller)
    assert await read_through_api(caller, *later) == PLAIN
    assert await read_through_api(caller, call, message) == gone


async def test_older_texts_are_encrypted_and_decrypted_again_by_a_command(
    runtime: Runtime, caller: Caller, administrator: asyncpg.Connection, operator: Operator
) -> None:
    await set_encryption(runtime, caller, texts=False)
    planted = await plant(runtime, caller)
    await set_encryption(runtime, caller, texts=True)
    assert reencrypt(operator, caller) == (3, 0)
    assert not [text for text in await read_stored(administrator, caller) if "flowerpot" in text]
    assert await read_through_api(caller, *planted) == PLAIN
    assert reencrypt(operator, caller) == (0, 0)
    await set_encryption(runtime, caller, texts=False)
    assert reencrypt(operator, caller) == (3, 0)
    assert not [text for text in await read_stored(administrator, caller) if "flowerpot" not in text]
    assert await read_through_api(caller, *planted) == PLAIN


async def test_a_new_key_replaces_the_old_one_which_is_deleted(
    runtime: Runtime, caller: Caller, administrator: asyncpg.Connection, operator: Operator
) -> None:
    planted = await plant(runtime, caller)
    before = await list_keys(runtime, caller)
    assert reencrypt(operator, caller, "--new-key") == (3, 1)
    after = await list_keys(runtime, caller)
    assert after.keys() == before.keys() == {"texts"}
    assert all(text.startswith(f"sbt1.{after['texts'].hex}.") for text in await read_stored(administrator, caller))
    assert await read_through_api(caller, *planted) == PLAIN


async def replace_key(runtime: Runtime, caller: Caller) -> int:
    """Do what the command does with --new-key; return the number of deleted keys."""
    async with runtime.database.write(caller.organization_id) as session:
        await retire_content_key(session)
    async for _ in reencrypt_content(runtime.database, caller.organization_id, is_encrypted=True):
        pass
    async with runtime.database.write(caller.organization_id) as session:
        return len(await delete_unused_content_keys(session))


async def test_a_key_is_kept_for_a_line_that_is_written_while_it_is_replaced(
    runtime: Runtime, caller: Caller, administrator: asyncpg.Connection
) -> None:
    call, _ = await plant(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        await add_line(session, call.id, WORDS, position=1)
        await session.flush()
        replacing = asyncio.create_task(replace_key(runtime, caller))
        waiting = (
            "select pid from pg_stat_activity where wait_event_type = 'Lock' and query ~ '^SELECT organization_key'"
        )
        await eventually(lambda: administrator.fetch(waiting), bool)
    assert await replacing == 0
    transcript = (await caller.get(f"/v1/calls/{call.id}/transcript")).json
    assert [at(transcript, "items", place, "content") for place in (0, 1)] == [WORDS, WORDS]
    assert await replace_key(runtime, caller) == 2


async def test_a_column_of_content_takes_nothing_else_and_is_compared_with_nothing_else(
    runtime: Runtime, caller: Caller
) -> None:
    call, _ = await plant(runtime, caller)
    is_call = col(Call.id) == call.id
    plain: list[Executable] = [
        select(Call.id).where(col(Call.call_summary) == WORDS),
        select(Call.id).where(col(Call.extracted_data).in_([{"place": WORDS}])),
        update(Call).where(is_call).values(call_summary=WORDS),
        update(Call).where(is_call).values(call_summary=Content(WORDS)),
        insert(TranscriptLine).values(**call_line(call), content=WORDS),
    ]
    for statement in plain:
        async with runtime.database.write(caller.organization_id) as session:
            with pytest.raises(StatementError, match=r"takes `Content`|not sealed"):
                await session.exec(statement)  # type: ignore[call-overload]
    async with runtime.database.write(caller.organization_id) as session:
        with pytest.raises(StatementError, match="not sealed"):
            async with session.begin_nested():
                session.add(TranscriptLine(**call_line(call), content=Content(WORDS)))
        kept = (await session.exec(session.select(TranscriptLine))).one()
        with pytest.raises(InvalidRequestError, match="not opened"):
            str(kept.content.value)
        await open_content(session, kept)
        moved = TranscriptLine(**call_line(call), content=kept.content)
        await seal_content(session, moved)
        session.add(moved)
    transcript = (await caller.get(f"/v1/calls/{call.id}/transcript")).json
    assert [at(transcript, "items", place, "content") for place in (0, 1)] == [WORDS, WORDS]


def call_line(call: Call) -> dict[str, Any]:
    times = {"position": 1, "timestamp_ms": 1, "ended_ms": 1}
    return {"organization_id": call.organization_id, "call_id": call.id, "role": "user", **times}


async def test_a_process_without_the_secret_key_is_unavailable_and_not_wrong(runtime: Runtime, caller: Caller) -> None:
    call, _ = await plant(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        key = (await session.exec(session.select(OrganizationKey))).one()
        label = f"organization_key|wrapped|{key.id}|{caller.organization_id}"
        key.wrapped = KeyRing(["a lost key"]).encrypt("00" * 32, label)
    assert (await caller.get(f"/v1/calls/{call.id}/transcript")).status == 503


async def test_reencryption_and_shredding_are_in_the_audit_log(
    runtime: Runtime, caller: Caller, operator: Operator
) -> None:
    await plant(runtime, caller)
    for command in (("reencrypt",), ("shred", "--yes")):
        operator.ask("keys", *command, "--org", str(caller.organization_id))
    async with runtime.database.write(caller.organization_id) as session:
        rows = session.select(AuditEntry).where(col(AuditEntry.action).startswith("texts"))
        entries = (await session.exec(rows.order_by(col(AuditEntry.id)))).all()
    assert [(entry.actor, entry.action) for entry in entries] == [
        ("operator", "texts.reencrypted"),
        ("operator", "texts_key.destroyed"),
    ]
