"""The table "Carriers and extensions" of docs/plugins/containment.md: each part has the outcome that the page says."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from uuid import UUID

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from switchboard.apps.worker.jobs import notify_event_watchers
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.providers import containment
from switchboard.engine.providers.containment import contain
from switchboard.engine.providers.instances import Extensions
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import (
    AgentTool,
    CallbackUrls,
    OutboundCall,
    OutboundTextMessage,
    OutcomeUnknown,
    ProviderError,
    ToolCall,
    ToolContext,
    hookimpl,
)
from switchboard.plugin_sdk.event_watchers import HookWatcher
from switchboard.plugin_sdk.registry import Plugin, Registry
from switchboard.resources.automations import runs
from switchboard.runtime import Runtime
from switchboard_offline.loopback import LoopbackSettings, LoopbackTelephony

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.automations import advance_runs, create_automation, get_only_run, let_time_pass, publish_message
from tests.fixtures.json_access import at
from tests.fixtures.servers import REPOSITORY
from tests.fixtures.work import do_due_work
from tests.plugins import faulty_extensions
from tests.plugins.faulty_extensions import (
    PRIVATE,
    CarrierOfFaultyCodecs,
    Fault,
    FaultyCarrier,
    ToolOfFaultySchema,
)

PLUGIN = Plugin("faulty", "switchboard-faulty", "1.2")
SETTINGS = LoopbackSettings(signing_secret=SecretStr("a signing secret of the tests"))
CALLBACKS = CallbackUrls("https://example.com")
CALL = OutboundCall("1", "+15550100200", PRIVATE, "wss://example.com/media", CALLBACKS)
MESSAGE = OutboundTextMessage("1", "+15550100200", PRIVATE, "Hello", CALLBACKS)
CONTEXT = ToolContext(UUID(int=1), UUID(int=2), None, PRIVATE, "+15550100200")
SHORT_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Situation:
    """The platform, an organization, and a cell's outcome."""

    runtime: Runtime
    caller: Caller
    outcome: str


Check = Callable[[Situation], Awaitable[None]]


def create_carrier(kind: type[LoopbackTelephony]) -> LoopbackTelephony:
    return contain(kind, PLUGIN)(SETTINGS)


async def check_carrier(situation: Situation) -> None:
    with pytest.raises(ProviderError, match=r"^Faulty failed: .* of switchboard-faulty 1\.2") as failed:
        await create_carrier(FaultyCarrier).find_call("1")
    assert not isinstance(failed.value, OutcomeUnknown)
    assert ("did not return within" in str(failed.value)) == (situation.outcome == "time limit")


async def check_calling_carrier(situation: Situation) -> None:
    async def call() -> None:
        await create_carrier(FaultyCarrier).place_call(CALL)

    async def send() -> None:
        await create_carrier(FaultyCarrier).send_text_message(MESSAGE)

    for reach in (call, send):
        with pytest.raises(ProviderError, match=r"^Faulty failed: .* of switchboard-faulty 1\.2") as failed:
            await reach()
        assert isinstance(failed.value, OutcomeUnknown) == (situation.outcome == "unknown outcome")


async def check_codec(situation: Situation) -> None:
    def use(place: int) -> object:
        codec = create_carrier(CarrierOfFaultyCodecs).create_media_codec("wss://example.com/media")
        return (lambda: codec.decode(""), lambda: codec.encode(b""), codec.clear, lambda: codec.mark("x"))[place]()

    for place in range(4):
        with pytest.raises(ProviderError, match=r"^Faulty failed: .* of switchboard-faulty 1\.2"):
            use(place)


async def check_action(situation: Situation) -> None:
    runtime, caller = situation.runtime, situation.caller
    automation = await create_automation(caller, {"type": "faulty_action", "params": {}})
    await publish_message(runtime, caller)
    for _ in range(runs.MAX_ATTEMPTS):
        await advance_runs(runtime, caller)
        await let_time_pass(runtime, caller)
    run = await get_only_run(caller, automation)
    assert run["status"] == "failed"
    assert str(run["error_message"]).startswith("actions.0 (faulty_action) failed: The action")


async def check_tool(situation: Situation) -> None:
    extensions = situation.runtime.call(Extensions)
    toolbox = Toolbox(await extensions.create_all(situation.caller.organization_id, AgentTool), CONTEXT)
    assert ("faulty_tool" in {spec.name for spec in toolbox.specs}) == (situation.outcome == "failed tool")
    (error,) = (await toolbox.run(ToolCall("1", "faulty_tool", {}))).values()
    assert error in ("faulty_tool failed", "faulty_tool took too long", "there is no tool faulty_tool")


async def check_tool_schema(situation: Situation) -> None:
    assert Toolbox([ToolOfFaultySchema()], CONTEXT).specs == ()


def count_exceptions(extension: str, method: str) -> float:
    labels = {"plugin": "-", "provider": extension, "method": method}
    return metrics.registry.get_sample_value("switchboard_plugin_exceptions_total", labels) or 0


async def check_watcher(situation: Situation) -> None:
    await publish_message(situation.runtime, situation.caller)
    with capture_logs() as logs:
        await do_due_work(situation.runtime, notify_event_watchers)
    found = [entry for entry in logs if "faulty_watcher" in (entry.get("watcher"), entry.get("extension"))]
    assert bool(found) == (situation.outcome == "logged")


async def check_hook(situation: Situation) -> None:
    watcher = HookWatcher("faulty", faulty_extensions.event_published, seconds=SHORT_SECONDS)
    event = SimpleNamespace(name="call.completed")
    with capture_logs() as logs:
        error = await watcher.notify(event)  # type: ignore[arg-type] # only its name is used
    assert (bool(logs) or error is not None) == (situation.outcome == "logged")


async def check_detector(situation: Situation) -> None:
    caller = situation.caller
    agent = await caller.post("/v1/agents", {"name": "Agent", "redaction": {"kinds": ["faulty_kind"]}})
    number = await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})
    call = {"agent_id": agent.json["id"], "from_number_id": number.json["id"], "to_number": PRIVATE}
    placed = await caller.post("/v1/calls", {**call, "metadata": {"said": "hello"}})
    assert at(placed.json, "metadata", "said") == "[faulty kind]"


async def check_other_hook(situation: Situation) -> None:
    def list_models() -> object:
        return faulty_extensions.fail()

    hook = hookimpl(list_models, specname="llm_providers")
    with capture_logs():
        plugin = Registry().add("faulty", SimpleNamespace(llm_providers=hook))
    assert plugin.provides == []
    assert plugin.faults


CHECKS: dict[str, Check] = {
    "carrier": check_carrier,
    "carrier that is asked to call or to send": check_calling_carrier,
    "codec of a carrier": check_codec,
    "automation action": check_action,
    "agent tool": check_tool,
    "schema of an agent tool": check_tool_schema,
    "event watcher": check_watcher,
    "hook `event_published`": check_hook,
    "detector of private data": check_detector,
    "another hook, or the module": check_other_hook,
}
"""By the first column of the table. Each check uses the part once, and knows what each outcome looks like there."""


def read_cells() -> Iterator[tuple[str, str, str]]:
    """Yield part, fault, and outcome of every cell of the table."""
    page = (REPOSITORY / "docs/plugins/containment.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line]
    (faults,) = (row[1:] for row in rows if row[0] == "part")
    for row in rows:
        if row[0] in CHECKS:
            yield from ((row[0], fault, outcome) for fault, outcome in zip(faults, row[1:], strict=True))


CELLS = list(read_cells())


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert registry.add("faulty", faulty_extensions).faults == []
    return registry


async def test_exceptions_are_counted_and_named_with_plugin_and_version(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fault, "current", "raises")
    counted = [
        ("faulty_tool", "run"),
        ("faulty_watcher", "watch"),
        ("faulty", "event_published"),
        ("faulty_action", "run"),
        ("faulty_kind", "find"),
    ]
    before = [count_exceptions(*each) for each in counted]
    with capture_logs() as logs:
        toolbox = Toolbox(await runtime.call(Extensions).create_all(caller.organization_id, AgentTool), CONTEXT)
        await toolbox.run(ToolCall("1", "faulty_tool", {}))
        await publish_message(runtime, caller)
        await do_due_work(runtime, notify_event_watchers)
        await create_automation(caller, {"type": "faulty_action", "params": {}})
        await publish_message(runtime, caller)
        await advance_runs(runtime, caller)
        await check_detector(Situation(runtime, caller, "redacted"))
    for each, first in zip(counted, before, strict=True):
        assert count_exceptions(*each) > first, each
    named = [entry for entry in logs if entry.get("extension") == "faulty_tool"]
    assert [(entry["plugin"], entry["version"], entry["method"]) for entry in named] == [("-", "-", "run")]


def test_the_table_has_every_part() -> None:
    assert {part for part, _, _ in CELLS} == CHECKS.keys()


@pytest.mark.parametrize(
    ("part", "fault", "outcome"),
    [cell for cell in CELLS if cell[2] != "–"],
    ids=lambda value: value.replace("`", ""),
)
async def test_a_fault_has_the_outcome_of_the_page(
    runtime: Runtime, caller: Caller, *, part: str, fault: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ("find_call", "place_call", "send_text_message"):
        monkeypatch.setitem(containment.DEADLINES, method, SHORT_SECONDS)
    monkeypatch.setattr(Fault, "current", fault)
    with capture_logs() as logs:
        await CHECKS[part](Situation(runtime, caller, outcome))
    assert PRIVATE not in str(logs)
