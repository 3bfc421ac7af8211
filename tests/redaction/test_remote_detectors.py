"""Private data that a service finds: in a conversation, in calls and text messages, and during its outage."""

import asyncio

import pytest
from structlog.testing import capture_logs
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import PAUSE_SECONDS, Redactor
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import RemotePrivateDataDetector, SpokenText

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.dashboard import People
from tests.fixtures.json_access import at
from tests.fixtures.presidio import Presidio

CARD = "4111 1111 1111 1111"
NAME = "Ada Lovelace"
PAGE = "/dashboard/providers/private_data_detector/personal_data"


class NameService(RemotePrivateDataDetector):
    """Finds one name, or fails, or takes its time."""

    title = "Names"

    def __init__(self, name: str, failure: Exception | None = None, *, seconds: float = 0.0) -> None:
        self.name = name  # type: ignore[misc] # one label of the metric for each test
        self.failure = failure
        self.seconds = seconds
        self.searches = 0

    async def search(self, spoken: SpokenText) -> list[tuple[int, int]]:
        self.searches += 1
        await asyncio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        start = spoken.text.find(NAME)
        return [(start, start + len(NAME))] if start >= 0 else []

    def count(self, reason: str) -> float:
        """Return how many texts were not searched for this reason."""
        value = metrics.registry.get_sample_value(
            "switchboard_private_data_unsearched_total", {"detector": self.name, "reason": reason}
        )
        return value or 0.0


def build_redactor(service: NameService, *, visible: frozenset[str] = frozenset()) -> Redactor:
    detectors = [*(detector() for detector in BUILT_IN), service]
    return Redactor(detectors, frozenset(detector.name for detector in detectors), visible)


async def test_a_value_that_was_found_is_redacted_from_then_on() -> None:
    redactor = build_redactor(NameService("full_name"))
    await redactor.search(f"I am {NAME} and my card is {CARD}.")
    assert redactor.redact_utterance(f"I am {NAME} and my card is {CARD}.").kept == (
        "I am [full name] and my card is [card number]."
    )
    assert redactor.redact(f"Thank you, {NAME}!").kept == "Thank you, [full name]!"
    assert redactor.redact(f"{NAME}s").kept == f"{NAME}s"
    assert await redactor.redact_json({"customer": [NAME, 7]}, for_model=False) == {"customer": ["[full name]", 7]}


async def test_the_model_sees_what_it_may_see() -> None:
    redactor = build_redactor(NameService("seen_name"), visible=frozenset({"seen_name"}))
    await redactor.search_json({"customer": {"name": NAME}})
    redacted = redactor.redact(NAME)
    assert (redacted.kept, redacted.for_model) == ("[seen name]", NAME)


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        (NameService("failing_name", ValueError(NAME)), "failed"),
        (NameService("late_name", seconds=60), "late"),
    ],
    ids=["failed", "late"],
)
async def test_without_the_service_the_built_in_detectors_stand(service: NameService, reason: str) -> None:
    redactor = build_redactor(service)
    with capture_logs() as lines:
        for _ in range(3):
            await redactor.search(f"I am {NAME}, {CARD}")
            assert redactor.redact(f"I am {NAME}, {CARD}").kept == f"I am {NAME}, [card number]"
    assert service.searches == 1, "it is left alone for a while"
    assert (service.count(reason), service.count("paused")) == (1, 2)
    assert [line["event"] for line in lines].count("private data not searched by a service") == 1
    assert NAME not in str(lines)


async def test_a_service_is_asked_again_after_the_pause() -> None:
    service = NameService("returning_name", ValueError())
    redactor = build_redactor(service)
    await redactor.search(NAME)
    service.failure = None
    await asyncio.sleep(PAUSE_SECONDS)
    await redactor.search(NAME)
    assert redactor.redact(NAME).kept == "[returning name]"


async def test_presidio_redacts_metadata_and_text_messages(people: People, caller: Caller) -> None:
    async with Presidio.listening(PERSON=NAME) as presidio:
        operator = await people.join(caller.organization_id, superadmin=True)
        saved = await operator.post(PAGE, {"settings.url": presidio.url, "settings.score_threshold": "0.4"})
        assert saved.status == 303, saved.html
        agent = await caller.post("/v1/agents", {"name": "Agent", "redaction": {"kinds": ["personal_data"]}})
        assert agent.status == 201, agent.body
        number = await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})
        number_id = number.json["id"]
        call = {"agent_id": agent.json["id"], "from_number_id": number_id, "to_number": "+15550100001"}
        placed = await caller.post("/v1/calls", {**call, "metadata": {"customer": f"{NAME} (VIP)"}})
        assert at(placed.json, "metadata", "customer") == "[personal data] (VIP)"
        message = {"to_number": "+15550100001", "from_number_id": number_id, "body": f"Hello {NAME}!"}
        await caller.send("PUT", f"/v1/phone-numbers/{number_id}", {"inbound_agent_id": agent.json["id"]})
        sent = await caller.post("/v1/sms", message)
        assert sent.json["body"] == "Hello [personal data]!"
        presidio.failing = True
        sent = await caller.post("/v1/sms", message)
        assert sent.json["body"] == message["body"], "the message is sent without it"
        assert {request.score_threshold for request in presidio.requests} == {0.4}
