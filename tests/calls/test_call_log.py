"""The transcript of a live call in the database, whose reply to a commit may be lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from structlog.testing import capture_logs
from switchboard.engine.conversation.call import TranscriptEntry
from switchboard.foundation.database import Database, TenantSession, now
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.media.call_log import DatabaseCallLog
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.calls import add_call


class ForgetfulDatabase(Database):
    """Database whose first reply to a commit is lost."""

    def __init__(self, database: Database) -> None:
        self.__dict__ = database.__dict__
        self._lost = False

    @asynccontextmanager
    async def tenant(self, organization_id: UUID, *, actor: str | None = None) -> AsyncIterator[TenantSession]:
        async with super().tenant(organization_id, actor=actor) as session:
            yield session
        if not self._lost:
            self._lost = True
            raise ConnectionResetError


async def test_a_line_whose_commit_was_not_confirmed_is_in_the_transcript_once(
    runtime: Runtime, caller: Caller
) -> None:
    call = await add_call(runtime, caller, now())
    with capture_logs() as logged:
        async with DatabaseCallLog(ForgetfulDatabase(runtime.database), call) as log:
            log.record_entry(TranscriptEntry("user", "Hello?", 0, 900))
            log.record_entry(TranscriptEntry("agent", "We open at seven.", 1000, 1900))
    assert [entry["event"] for entry in logged] == ["work waits for the database"]
    async with runtime.database.tenant(caller.organization_id) as session:
        lines = await calls.get_transcript(session, call.id)
    assert [line.content for line in lines] == ["Hello?", "We open at seven."]
