"""The transcript of a live call in the database, whose reply to a commit may be lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs
from switchboard.engine.conversation.call import TranscriptEntry
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.media.call_log import DatabaseCallLog
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually


class ForgetfulDatabase(Database):
    """Database whose first reply to a commit is lost."""

    def __init__(self, database: Database) -> None:
        self.__dict__ = database.__dict__
        self._lost = False

    @asynccontextmanager
    async def write(self, organization_id: UUID, *, actor: str | None = None) -> AsyncIterator[WriteSession]:
        async with super().write(organization_id, actor=actor) as session:
            yield session
        if not self._lost:
            self._lost = True
            raise ConnectionResetError


async def set_encryption(runtime: Runtime, caller: Caller, *, texts: bool) -> None:
    async with runtime.database.system() as session:
        organization = await session.get_one(Organization, caller.organization_id)
        organization.policy = Policy(encryption=Encryption(texts=texts))


async def read_lines(runtime: Runtime, call: Call) -> list[tuple[str, bool]]:
    """Return each line as it is read, and whether it is stored encrypted."""
    async with runtime.database.write(call.organization_id) as session:
        rows = text("select content from transcript_line where call_id = :id order by position")
        stored = (await (await session.connection()).execute(rows, {"id": call.id})).scalars().all()
        lines = (await calls.get_transcript(session, call.id))[: len(stored)]  # others were written meanwhile
    return [(line.content.value, text.startswith("sbt1.")) for line, text in zip(lines, stored, strict=True)]


def has_line(place: int, lines: list[tuple[str, bool]]) -> bool:
    return len(lines) > place


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_line_whose_commit_was_not_confirmed_is_in_the_transcript_once(
    runtime: Runtime, caller: Caller, encrypted: bool
) -> None:
    await set_encryption(runtime, caller, texts=encrypted)
    call = await add_call(runtime, caller, now())
    with capture_logs() as logged:
        async with DatabaseCallLog(ForgetfulDatabase(runtime.database), call) as log:
            log.record_entry(TranscriptEntry("user", "Hello?", 0, 900))
            log.record_entry(TranscriptEntry("agent", "We open at seven.", 1000, 1900))
    assert [entry["event"] for entry in logged] == ["work waits for the database"]
    assert await read_lines(runtime, call) == [("Hello?", encrypted), ("We open at seven.", encrypted)]


async def test_a_policy_that_changes_during_the_call_applies_from_the_next_line(
    runtime: Runtime, caller: Caller
) -> None:
    call, words = await add_call(runtime, caller, now()), ["One.", "Two.", "Three."]
    async with DatabaseCallLog(runtime.database, call) as log:
        for place, (word, encrypted) in enumerate(zip(words, (False, True, False), strict=True)):
            await set_encryption(runtime, caller, texts=encrypted)
            log.record_entry(TranscriptEntry("user", word, 1000 * place, 1000 * place + 900))
            await eventually(partial(read_lines, runtime, call), partial(has_line, place))
    assert await read_lines(runtime, call) == [("One.", False), ("Two.", True), ("Three.", False)]


async def read_contents(runtime: Runtime, call: Call) -> list[str]:
    async with runtime.database.write(call.organization_id) as session:
        return [line.content.value for line in await calls.get_transcript(session, call.id)]


async def list_stored(runtime: Runtime, call: Call) -> list[bool]:
    """Return of each stored line whether it is encrypted."""
    async with runtime.database.write(call.organization_id) as session:
        rows = text("select content like 'sbt1.%' from transcript_line where call_id = :id order by position")
        return list((await (await session.connection()).execute(rows, {"id": call.id})).scalars())


@pytest.mark.parametrize("encrypted", [False, True])
async def test_an_utterance_that_goes_on_is_in_the_transcript_once_the_call_has_ended(
    runtime: Runtime, caller: Caller, encrypted: bool
) -> None:
    await set_encryption(runtime, caller, texts=encrypted)
    call = await add_call(runtime, caller, now())
    async with DatabaseCallLog(runtime.database, call) as log:
        log.record_entry(TranscriptEntry("user", "When do you open?", 0, 900))
        await eventually(partial(list_stored, runtime, call), lambda stored: stored == [encrypted])
        for words in ("We open", "We open at seven"):
            log.record_unfinished(TranscriptEntry("agent", words, 1000, 1900, interrupted=True))
            await eventually(partial(list_stored, runtime, call), lambda stored: stored == [encrypted, encrypted])
            assert await read_contents(runtime, call) == ["When do you open?"]
            exported = (await caller.get("/v1/exports/transcripts")).body
            assert (b"When do you open?" in exported, b"We open" in exported) == (True, False)
        async with runtime.database.write(call.organization_id) as session:
            (await get_row(session, Call, call.id)).ended_at = now()  # by another process, because this one is dead
        said = ["When do you open?", "We open at seven"]
        await eventually(partial(read_contents, runtime, call), lambda contents: contents == said)
        log.record_entry(TranscriptEntry("agent", "We open at seven.", 1000, 2100))
        log.record_unfinished(TranscriptEntry("user", "A cough", 2200, 2400))
    assert await read_contents(runtime, call) == ["When do you open?", "We open at seven."]
