"""Words of a call, of its analysis, and of a text message, searched in a dump of the database and in Redis."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from redis.asyncio import Redis
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.embedded import servers as embedded_servers
from switchboard.engine.conversation.call import TranscriptEntry
from switchboard.foundation.database import ReadSession, TenantOwned, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.events.models import Delivery, Event, EventTarget
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider
from switchboard.resources.calls.media.call_log import DatabaseCallLog
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.sms.models import SmsMessage

from tests.fixtures.app import LivePlatform, fresh_number
from tests.fixtures.automations import TAG, create_automation, wait_for_finished_runs
from tests.fixtures.calls import add_call

RowT = TypeVar("RowT", bound=TenantOwned)
PLAIN, ENCRYPTED = Policy(), Policy(encryption=Encryption(texts=True))


@pytest.mark.parametrize(
    ("live", "flowerpot", "is_found"), [(PLAIN, "yellow", True), (ENCRYPTED, "purple", False)], indirect=["live"]
)
async def test_words_are_in_a_dump_only_without_encryption(
    live: LivePlatform, servers: DataDirectory, flowerpot: str, is_found: bool, tmp_path: Path
) -> None:
    sentence = f"the spare key lies under the {flowerpot} flowerpot"
    await live_through(live, sentence)
    async with live.runtime.database.write(live.caller.organization_id) as session:
        assert [line.content.value for line in await read_rows(session, TranscriptLine)] == [sentence]
        assert [call.extracted_data.value for call in await read_rows(session, Call)] == [{"place": sentence}]
        assert sentence in [message.body.value for message in await read_rows(session, SmsMessage)]
        received = [event for event in await read_rows(session, Event) if event.name == "sms.received"]
        assert [event.data.value["body"] for event in received] == [sentence]
        assert any(sentence in delivery.body.value for delivery in await read_rows(session, Delivery))
    dump = await dump_database(servers, tmp_path / "dump.sql")
    assert (sentence in dump) == is_found
    assert (flowerpot in dump) == is_found
    assert flowerpot.encode() not in await dump_redis(live.runtime.redis)


async def read_rows(session: ReadSession, table: type[RowT]) -> Sequence[RowT]:
    rows = (await session.exec(session.select(table))).all()
    await open_content(session, *rows)
    return rows


async def live_through(live: LivePlatform, sentence: str) -> None:
    """Write the sentence in a text message, which runs an automation and is delivered to a webhook endpoint, say it in
    a call, and have the call's metadata and an analysis repeat it.
    """
    runtime, caller, organization_id = live.runtime, live.caller, live.caller.organization_id
    automation = await create_automation(caller, TAG)
    async with runtime.database.write(organization_id) as session:
        session.add(EventTarget(organization_id=organization_id, kind="endpoint", url="https://receiver.invalid/"))
    callbacks = build_callback_urls(runtime.settings.base_url, organization_id, "loopback")
    async with runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        await carrier.simulate_text_message(
            from_number=fresh_number(), to_number=live.number, body=sentence, callbacks=callbacks
        )
    await wait_for_finished_runs(caller, automation)
    call = await add_call(runtime, caller, now(), call_metadata={"note": sentence})
    async with DatabaseCallLog(runtime.database, call) as log:
        log.record_entry(TranscriptEntry("user", sentence, 0, 1000))
    async with runtime.database.write(organization_id) as session:
        analyzed = await session.get_one(Call, call.id)
        analyzed.call_summary = Content(f"The caller said: {sentence}.")
        analyzed.extracted_data = Content({"place": sentence})
        await seal_content(session, analyzed)


async def dump_database(servers: DataDirectory, file: Path) -> str:
    """Dump the database with the embedded PostgreSQL's own `pg_dump`, as its administrator."""
    binary = embedded_servers._postgres_binaries() / "pg_dump"
    url = f"postgresql:///switchboard?host={servers.sockets}&user=switchboard"
    command = [str(binary), "--format=plain", f"--file={file}", url]
    subprocess.run(command, env={"PATH": os.defpath, "LC_ALL": "C"}, check=True)
    return file.read_text()


async def dump_redis(redis: Redis) -> bytes:
    """Have Redis save its file, and read it."""
    await redis.save()
    folder = (await redis.config_get("dir"))["dir"]
    name = (await redis.config_get("dbfilename"))["dbfilename"]
    return Path(folder, name).read_bytes()
