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
from switchboard.engine.conversation.speech.text_normalization import spell_digits
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.database import now
from switchboard.foundation.observability import traces
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import lock_row
from switchboard.plugin_sdk import (
    ActionContext,
    ActionError,
    ActionParams,
    AutomationAction,
    ChatEvent,
    ChatRequest,
    JsonObject,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextMessageReceived,
    TranscriptionRequest,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.calls.dialing import MediaGrant
from switchboard.resources.calls.live.heartbeat import run_heartbeat
from switchboard.resources.calls.media.call_runner import CallRunner
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.uploads import RecordingUploader
from switchboard.resources.calls.states import finish_call
from switchboard.resources.identity.policy import Policy, RedactionDefault
from switchboard.resources.sms import inbound
from switchboard.runtime import Runtime
from switchboard_offline.scripted import ScriptedLLM

from tests.fixtures.app import Caller, Organizations, fresh_number
from tests.fixtures.automations import create_automation, get_actions, wait_for_finished_runs
from tests.fixtures.calls import add_call
from tests.fixtures.conversation import Socket, Transcriber, synthesize_caller
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.object_store import S3Server, start_s3_server
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


class LookupParams(ActionParams):
    """Parameters of the lookup."""

    fails: bool = False


class PlantedLookup(AutomationAction[LookupParams]):
    """Returns planted data, or quotes them in its error."""

    name, title, Params = "planted_lookup", "Look up", LookupParams
    found: ClassVar[list[Planted]] = []

    async def run(self, context: ActionContext, params: LookupParams) -> JsonObject:
        found: JsonObject = {"card": self.found[0].card, "mail": self.found[0].email}
        if params.fails:
            raise ActionError(f"cannot update {found}", retryable=False)
        return found


class PlantedPlugin:
    """The providers and the action of this module."""

    @staticmethod
    @hookimpl
    def automation_actions() -> list[type[PlantedLookup]]:
        return [PlantedLookup]

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


@pytest_asyncio.fixture
async def s3() -> AsyncIterator[S3Server]:
    async with start_s3_server() as server:
        yield server


@pytest.fixture
def settings(settings: Settings, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with the recordings in S3."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return settings.model_copy(update={"recordings_url": s3.environment["SWITCHBOARD_RECORDINGS_URL"]})


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
    beating = asyncio.create_task(runtime.call(run_heartbeat))
    yield
    beating.cancel()
    await runtime.engine.close()


@dataclass(frozen=True, slots=True)
class AnsweredNumber:
    """A phone number, and the agent that answers it."""

    agent_id: str
    number_id: str
    phone_number: str


async def create_number(runtime: Runtime, caller: Caller, **agent: object) -> AnsweredNumber:
    """Create an agent that redacts, and a phone number that it answers."""
    providers = [
        ProviderSpec(Capability.TELEPHONY, "loopback", {}),
        ProviderSpec(Capability.SPEECH_TO_TEXT, "planted", {}),
        ProviderSpec(Capability.TEXT_TO_SPEECH, "espeak", {}),
        ProviderSpec(Capability.LLM, "planted", {}),
    ]
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, providers)
    created = await caller.post("/v1/agents", {"name": "Agent", "redaction": {"kinds": KINDS}, **agent})
    assert created.status == 201, created.body
    number = fresh_number()
    bought = await caller.post("/v1/phone-numbers", {"phone_number": number, "inbound_agent_id": created.json["id"]})
    return AnsweredNumber(str(created.json["id"]), str(bought.json["id"]), number)


async def send_planted_data(runtime: Runtime, caller: Caller, number: AnsweredNumber, planted: Planted) -> None:
    """Write the planted data in a text message, and in the metadata of a call that nobody answers."""
    sent = await caller.post(
        "/v1/sms",
        {"from_number_id": number.number_id, "to_number": "+15550100001", "body": f"{planted.card} or {planted.email}"},
    )
    assert (sent.status, sent.json["body"]) == (201, "[card number] or [email address]")
    placed = await caller.post(
        "/v1/calls",
        {
            "agent_id": number.agent_id,
            "from_number_id": number.number_id,
            "to_number": "+15550100002",
            "metadata": {"card": planted.card, "mail": [planted.email]},
        },
    )
    assert (placed.status, placed.json["metadata"]) == (201, {"card": "[card number]", "mail": ["[email address]"]})
    async with runtime.database.write(caller.organization_id) as session:
        await finish_call(session, await lock_row(session, Call, UUID(str(placed.json["id"]))), "no-answer")


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
    organizations: Organizations,
    receiver: Receiver,
    servers: DataDirectory,
    exported: InMemorySpanExporter,
    *,
    s3: S3Server,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caller = await organizations.create(policy=Policy(redaction=RedactionDefault(kinds=KINDS)))
    number = await create_number(runtime, caller)
    await create_endpoint(caller, f"{receiver.url}/events")
    planted, limit = [Planted.create() for _ in range(CONVERSATIONS)], asyncio.Semaphore(AT_ONCE)
    lookups: list[Json] = [{"type": PlantedLookup.name, "params": {"fails": fails}} for fails in (False, True)]
    automation = await create_automation(caller, *lookups)
    PlantedLookup.found[:] = planted

    async def hold(one: Planted) -> None:
        async with limit:
            await hold_call(runtime, caller, number.agent_id, one)
            await send_planted_data(runtime, caller, number, one)
            message = TextMessageReceived(
                f"in-{uuid4()}", "+15550100001", number.phone_number, f"{one.card} or {one.email}"
            )
            await inbound.receive_message(runtime.database, caller.organization_id, "loopback", message, base_url="")

    await asyncio.gather(*(hold(one) for one in planted))
    await runtime.call(RecordingUploader).upload_spooled()

    def count(name: str) -> int:
        return sum(request.json.get("event") == name for request in receiver.at("/events"))

    await receiver.until(lambda: count("call.transcript.ready") >= CONVERSATIONS, seconds=60 + CONVERSATIONS)
    others = ("sms.received", "sms.sent", "call.failed")
    await receiver.until(lambda: all(count(name) >= CONVERSATIONS for name in others), seconds=60)
    (run, *_) = await wait_for_finished_runs(caller, automation, CONVERSATIONS)
    found, failed = get_actions(run)
    assert found["result"] == {"card": "[card number]", "mail": "[email address]"}
    assert "[card number]" in str(failed["error"])
    assert "[card number]" in str(run["error_message"])
    held = objects_at((await caller.get("/v1/calls?status=completed")).json, "items")
    said = await read_transcripts(caller, held)
    for placeholder in ("[card number]", "[email address]", "DTMF: [keypad]"):
        assert said.count(placeholder) >= min(CONVERSATIONS, 20), said
    files = [path.read_bytes() for path in runtime.settings.data_dir.rglob("*") if path.is_file()]
    objects = await s3.read_objects()
    assert sum(key.endswith(".flac") for key in objects) == CONVERSATIONS
    written = capfd.readouterr()
    places = {
        "the database": await dump_database(servers),
        "the data directory and the store": b" ".join([*files, *objects.values()]).decode("latin-1"),
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
    number = await create_number(runtime, caller, redaction=None)
    planted = Planted.create()
    await hold_call(runtime, caller, number.agent_id, planted)
    message = TextMessageReceived("in-1", "+15550100001", number.phone_number, f"{planted.card} or {planted.email}")
    await inbound.receive_message(runtime.database, caller.organization_id, "loopback", message, base_url="")
    dump = await eventually(lambda: dump_database(servers), lambda found: f"DTMF: {planted.pin}" in found)
    assert planted.grouped_card in dump
    assert f"{planted.card} or {planted.email}" in dump


async def test_the_model_sees_visible_metadata_until_the_call_is_over(runtime: Runtime, caller: Caller) -> None:
    redaction = {"kinds": ["card_number", "email_address"], "visible_to_model": ["email_address"]}
    number = await create_number(runtime, caller, redaction=redaction)
    order = str(uuid4())
    given = {"card": "4111 1111 1111 1111", "mail": "ada@example.com", "order": order}
    placed = await caller.post(
        "/v1/calls",
        {
            "agent_id": number.agent_id,
            "from_number_id": number.number_id,
            "to_number": "+15550100002",
            "metadata": given,
        },
    )
    kept = {"card": "[card number]", "mail": "[email address]", "order": order}
    assert placed.json["metadata"] == kept
    async with runtime.database.write(caller.organization_id) as session:
        call = await lock_row(session, Call, UUID(str(placed.json["id"])))
        assert call.prompt_variables.value == {**kept, "mail": "ada@example.com"}
        await finish_call(session, call, "no-answer")
        assert call.prompt_variables.value is None
