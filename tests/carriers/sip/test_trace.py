"""`switchboard sip trace`: the messages of a call with SIPp, live and ended, and why there may be none."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from pydantic import JsonValue
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk.audio import encode_audio
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.carriers.sip.line import SipLine, SipLines
from tests.carriers.sip.sipp import call_with_sipp
from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.command_line import CommandResult, Operator
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

pytestmark = pytest.mark.system
PERSON = "+15550100001"
SECOND = 16_000
"""Bytes of a second of 16-bit samples."""
FAREWELL = bytes(15 * SECOND) + speak_as_caller("goodbye") + bytes(40 * SECOND)


@asynccontextmanager
async def open_line(sip_lines: SipLines) -> AsyncIterator[SipLine]:
    trunk: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{find_free_port()}"]}
    async with sip_lines.open(trunk) as line:
        yield line


@asynccontextmanager
async def call_in(line: SipLine, sip_lines: SipLines) -> AsyncIterator[str]:
    """A live call from SIPp, by its id; it is over after the block."""
    caller = asyncio.create_task(
        call_with_sipp(
            sip_lines.folder / "sipp",
            caller=PERSON,
            number=line.live.number,
            gateway_port=line.sip_port,
            mulaw=encode_audio(np.frombuffer(FAREWELL, "<i2"), "mulaw"),
        )
    )
    call_id = await line.find_call(from_number=PERSON)
    await line.wait_until_said(call_id, "agent", "bakery on the corner")
    yield call_id
    await line.live.wait_for_end(call_id)
    await caller


def count_measured(name: str) -> float:
    """Return the number of calls in a histogram of lines' quality."""
    return metrics.registry.get_sample_value(f"switchboard_line_{name}_count", {"carrier": "sip"}) or 0.0


async def trace(operator: Operator, *arguments: str) -> CommandResult:
    return await asyncio.to_thread(operator.run, "sip", "trace", *arguments)


async def test_a_call_is_drawn_while_it_is_live_and_after_its_end(sip_lines: SipLines, operator: Operator) -> None:
    names = ("mos", "loss_share", "jitter_seconds")
    before = [count_measured(name) for name in names]
    async with open_line(sip_lines) as line:
        async with call_in(line, sip_lines) as call_id:
            live = await trace(operator, call_id)
            assert live.returncode == 0, live.stderr
            assert "BYE" not in live.stdout
        ended = await trace(operator, call_id)
        with_messages = await trace(operator, call_id, "--messages")
        found: Any = json.loads((await trace(operator, call_id, "--json")).stdout)

        async def count_all() -> list[float]:
            return [count_measured(name) for name in names]

        await eventually(count_all, lambda counts: counts == [number + 1 for number in before])
    arrows = [re.sub(r"^[0-9:.]{12} +\|(<?)-- (.+?) -+(>?)\|$", r"\1\2\3", row) for row in ended.stdout.splitlines()]
    assert arrows[2:] == ["<INVITE", "100 Trying>", "180 Ringing>", "200 OK>", "<ACK", "BYE>", "<200 OK"]
    assert f"127.0.0.1:{line.sip_port}" in arrows[1]
    assert "m=audio" in with_messages.stdout
    assert PERSON not in with_messages.stdout
    assert "+1555***0001" in with_messages.stdout
    assert found["omitted"] == 0
    assert [message["direction"] for message in found["messages"]] == ["in", "out", "out", "out", "in", "out", "in"]
    assert {message["transport"] for message in found["messages"]} == {"udp"}
    assert {message["local"] for message in found["messages"]} == {f"127.0.0.1:{line.sip_port}"}
    assert found["call_id"] == call_id


async def test_a_call_without_a_trace_is_explained(sip_lines: SipLines, operator: Operator, runtime: Runtime) -> None:
    async with open_line(sip_lines) as line:

        async def explain(**changes: object) -> str:
            """Trace an ended call with these columns; return the error."""
            async with runtime.database.write(line.live.caller.organization_id) as session:
                columns: dict[str, Any] = {
                    "organization_id": line.live.caller.organization_id,
                    "direction": "outbound",
                    "from_number": line.live.number,
                    "to_number": PERSON,
                    "carrier": "sip",
                    "status": "completed",
                }
                call = Call(id=uuid4(), **columns | changes)
                session.add(call)
                call_id = str(call.id)
            result = await trace(operator, call_id)
            assert (result.returncode, result.stdout) == (1, "")
            return result.stderr

        gateway = f"127.0.0.1:{line.control_port}"
        assert "went over loopback" in await explain(carrier="loopback", carrier_call_id="x")
        assert "no gateway has taken the call" in await explain()
        assert "does not keep the call's messages any more" in await explain(carrier_call_id=f"{uuid4().hex}@{gateway}")
        assert "not among the organization's gateways" in await explain(carrier_call_id=f"{uuid4().hex}@10.0.0.9:8070")
        unknown = await trace(operator, str(uuid4()))
        assert (unknown.returncode, "there is no call" in unknown.stderr) == (1, True)
    assert "cannot be reached" in await explain(carrier_call_id=f"{uuid4().hex}@{gateway}")
    wrong = await trace(operator, "no-id")
    assert wrong.returncode == 2
