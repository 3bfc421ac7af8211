"""Conversations with planted private data: none of it is left anywhere.

`PLANTED_CONVERSATIONS=300` holds as many as the release check does.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine
from stdnum import luhn
from switchboard.apps.embedded import DataDirectory
from switchboard.engine.conversation.speech.numerals import spell_digits
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.database import now
from switchboard.foundation.observability import traces
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextMessageReceived,
    TranscriptionRequest,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.calls.callback_urls import MediaGrant
from switchboard.resources.calls.media.call_runner import CallRunner
from switchboard.resources.calls.recordings.uploads import RecordingUploader
from switchboard.resources.sms import inbound
from switchboard.runtime import Runtime
from switchboard_offline.scripted import ScriptedLLM

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.calls import add_call
from tests.fixtures.conversation import Socket, Transcriber, synthesize_caller
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.receiver import Receiver
from tests.fixtures.table_rows import TABLES
from tests.fixtures.webhooks import create_endpoint

CONVERSATIONS = int(os.environ.get("PLANTED_CONVERSATIONS", "4"))
AT_ONCE = 16
KINDS = ["card_number", "iban", "national_id", "pin", "phone_number", "email_address", "keypad"]
SPEECH = synthesize_caller("Hello there.")


@dataclass(frozen=True, slots=True)
class Planted:
    """The private data of one conversation."""

    card: str
    email: str
    pin: str

    @classmethod
    def create(cls) -> "Planted":
        number = "4" + "".join(random.choices("0123456789", k=14))
        pin = "".join(random.choices("123456789", k=9))
        return cls(number + luhn.calc_check_digit(number), f"planted{uuid4().hex}@example.com", pin)

    @property
    def grouped_card(self) -> str:
        return " ".join(self.card[place : place + 4] for place in range(0, 16, 4))

    @property
    def traces(self) -> tuple[str, ...]:
        """Everything by which the data would be recognized."""
        spoken = [spell_digits(self.card), self.email.replace("@", " at ").replace(".", " dot ")]
        return (self.card, self.grouped_card, self.email, self.email.partition("@")[0], self.pin, *spoken)


class PlantedSpeechToText(SpeechToTextProvider[ProviderSettings]):
    """Hears the planted data, whatever is said."""

    name, title = "planted", "Planted"
    waiting: ClassVar[list[Planted]] = []

    async def check(self) -> None:
        """Succeed always."""

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        planted = self.waiting.pop()
        first, *rest = planted.grouped_card.split(" ", 1)
        return await Transcriber(
            f"I would like to pay with {planted.grouped_card}.",
            f"I mean {spell_digits(planted.card)}",
            f"My mail is {planted.email}, so {planted.email.replace('@', ' at ').replace('.', ' dot ')}",
            f"It was {first}",
            *rest,
        ).transcribe(request)


class PlantedLLM(ScriptedLLM):
    """The scripted model, which records what it is asked."""

    name = "planted"
    asked: ClassVar[list[str]] = []

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        self.asked.append(str(request))
        async for event in super().chat(request):
            yield event


class PlantedPlugin:
    """The providers of this module."""

    @staticmethod
    @hookimpl
    def speech_to_text_providers() -> list[type[PlantedSpeechToText]]:
        return [PlantedSpeechToText]

    @staticmethod
    @hookimpl
    def llm_providers() -> list[type[PlantedLLM]]:
        return [PlantedLLM]


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert registry.add("planted", PlantedPlugin).faults == []
    return registry


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of this process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "tracer", provider.get_tracer("switchboard"))
    return exporter


@pytest_asyncio.fixture(autouse=True)
async def started_engine(runtime: Runtime) -> AsyncIterator[None]:
    await runtime.engine.start()
    yield
    await runtime.engine.close()


async def create_number(runtime: Runtime, caller: Caller, **agent: object) -> tuple[str, str]:
    """Create an agent that redacts, and a phone number that it answers; return their id and number."""
    providers = [
        ProviderSpec(Capability.TELEPHONY, "loopback", {}),
        ProviderSpec(Capability.SPEECH_TO_TEXT, "planted", {}),
        ProviderSpec(Capability.TEXT_TO_SPEECH, "espeak", {}),
        ProviderSpec(Capability.LLM, "planted", {}),
    ]
    async with runtime.database.tenant(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, providers)
    created = await caller.post("/v1/agents", {"name": "Agent", "redaction": {"kinds": KINDS}, **agent})
    assert created.status == 201, created.body
    number = fresh_number()
    await caller.post("/v1/phone-numbers", {"phone_number": number, "inbound_agent_id": created.json["id"]})
    return str(created.json["id"]), number


async def hold_call(runtime: Runtime, caller: Caller, agent_id: str, planted: Planted) -> None:
    """Hold one call in which the caller says and enters the planted data."""
    call = await add_call(
        runtime, caller, now(), agent_id=UUID(agent_id), status="ringing", carrier_call_id=f"planted-{uuid4()}"
    )
    PlantedSpeechToText.waiting.append(planted)
    socket, token = Socket(), "token"
    grant = MediaGrant(caller.organization_id, call.id, "loopback", token)
    running = asyncio.create_task(runtime.call(CallRunner).run_call(grant, socket))
    for _ in range(5):
        await socket.say(SPEECH)
        await socket.say(b"\xff" * 4000)
    for key in f"{planted.pin}#":
        socket.press(key)
    await socket.say(b"\xff" * 8000)
    socket.hang_up()
    await running


async def dump_database(servers: DataDirectory) -> str:
    """Return every row of every table as text."""
    engine = create_async_engine(
        make_url(servers.database_url).set(drivername="postgresql+asyncpg", username="switchboard")
    )
    rows: list[str] = []
    async with engine.connect() as connection:
        for table in (await connection.execute(text(TABLES))).scalars().all():
            rows += (await connection.execute(text(f'select t::text from "{table}" t'))).scalars().all()  # noqa: S608
    await engine.dispose()
    return "\n".join(rows)


@pytest.mark.timeout(120 + 3 * CONVERSATIONS)
@pytest.mark.local_receivers
@pytest.mark.usefixtures("running_worker")
async def test_planted_private_data_is_nowhere(
    runtime: Runtime,
    caller: Caller,
    receiver: Receiver,
    servers: DataDirectory,
    exported: InMemorySpanExporter,
    *,
    capfd: pytest.CaptureFixture[str],
) -> None:
    agent_id, number = await create_number(runtime, caller)
    await create_endpoint(
        caller, f"{receiver.url}/events", events=["call.completed", "call.transcript.ready", "sms.received"]
    )
    planted, limit = [Planted.create() for _ in range(CONVERSATIONS)], asyncio.Semaphore(AT_ONCE)

    async def hold(one: Planted) -> None:
        async with limit:
            await hold_call(runtime, caller, agent_id, one)
            message = TextMessageReceived(f"in-{uuid4()}", "+15550100001", number, f"{one.card} or {one.email}")
            await inbound.receive_message(
                runtime.database, runtime.registry, caller.organization_id, "loopback", message
            )

    await asyncio.gather(*(hold(one) for one in planted))
    await runtime.call(RecordingUploader).upload_spooled()

    def count(name: str) -> int:
        return sum(request.json.get("event") == name for request in receiver.at("/events"))

    await receiver.until(lambda: count("call.transcript.ready") >= CONVERSATIONS, seconds=60 + CONVERSATIONS)
    await receiver.until(lambda: count("sms.received") >= CONVERSATIONS, seconds=60)
    calls = objects_at((await caller.get("/v1/calls")).json, "items")
    said = await read_transcripts(caller, calls)
    for placeholder in ("[card number]", "[email address]", "DTMF: [keypad]"):
        assert said.count(placeholder) >= min(CONVERSATIONS, 20), said
    files = [path for path in runtime.settings.data_dir.rglob("*") if path.is_file()]
    assert sum(path.suffix == ".flac" for path in files) == CONVERSATIONS
    written = capfd.readouterr()
    places = {
        "the database": await dump_database(servers),
        "the data directory and the store": "".join(path.read_bytes().decode("latin-1") for path in files),
        "the log": written.out + written.err,
        "webhooks": "".join(request.body.decode() for request in receiver.received),
        "traces": "".join(span.to_json() for span in exported.get_finished_spans()),
        "requests to the model": "".join(PlantedLLM.asked),
    }
    assert all(places.values())
    for name, content in places.items():
        lower = content.lower()
        assert not [trace for one in planted for trace in one.traces if trace in lower], name


async def read_transcripts(caller: Caller, calls: list[Json]) -> str:
    """Return the lines of all calls."""
    found = [(await caller.get(f"/v1/calls/{call['id']}/transcript")).json for call in calls]
    return "\n".join(str(line["content"]) for transcript in found for line in objects_at(transcript, "items"))


async def test_without_redaction_everything_is_kept_as_before(
    runtime: Runtime, caller: Caller, servers: DataDirectory
) -> None:
    agent_id, number = await create_number(runtime, caller, redaction=None)
    planted = Planted.create()
    await hold_call(runtime, caller, agent_id, planted)
    message = TextMessageReceived("in-1", "+15550100001", number, f"{planted.card} or {planted.email}")
    await inbound.receive_message(runtime.database, runtime.registry, caller.organization_id, "loopback", message)
    dump = await eventually(lambda: dump_database(servers), lambda found: f"DTMF: {planted.pin}" in found)
    assert planted.grouped_card in dump
    assert f"{planted.card} or {planted.email}" in dump
