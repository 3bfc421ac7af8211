"""`switchboard phone` against a running platform."""

import asyncio
import json

from tests.api.test_client_calls import CLIENT, register, send, transfer_to_client
from tests.carriers.lines import PERSON
from tests.fixtures.app import LivePlatform, fresh_number
from tests.fixtures.command_line import CommandResult, Operator
from tests.fixtures.json_access import at, objects_at, texts_at


async def run_phone(live: LivePlatform, operator: Operator, *arguments: str) -> CommandResult:
    settings = live.runtime.settings
    operator.environment |= {"SWITCHBOARD_DATA_DIR": str(settings.data_dir), "SWITCHBOARD_PORT": str(settings.port)}
    return await asyncio.to_thread(operator.run, "phone", *arguments)


async def run_phone_text(live: LivePlatform, operator: Operator, *arguments: str) -> CommandResult:
    return await run_phone(live, operator, "text", "--from", PERSON, *arguments)


async def test_a_message_is_answered(live: LivePlatform, operator: Operator) -> None:
    result = await run_phone_text(live, operator, "--to", live.number, "--body", "What are your opening hours?")
    assert result.returncode == 0, result.stderr
    assert "We are open from seven to six every day of the week." in result.stdout
    result = await run_phone_text(live, operator, "--to", live.number, "--body", "STOP", "--json")
    assert result.returncode == 0, result.stderr
    (conversation,) = (await live.caller.get("/v1/sms/conversations")).json["items"]  # type: ignore[misc,str-unpack]
    messages = (await live.caller.get(f"/v1/sms/conversations/{at(conversation, 'id')}/messages")).json["items"]
    assert json.loads(result.stdout) == {
        "message_id": next(item["id"] for item in objects_at(messages) if item["body"] == "STOP")
    }


async def test_a_message_has_files(live: LivePlatform, operator: Operator) -> None:
    result = await run_phone_text(live, operator, "--to", live.number, "--media", "loopback:picture.png", "--json")
    assert result.returncode == 0, result.stderr
    (conversation,) = objects_at((await live.caller.get("/v1/sms/conversations")).json, "items")
    messages = (await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")).json
    received = next(item for item in objects_at(messages, "items") if item["direction"] == "inbound")
    assert len(texts_at(received, "media_urls")) == 1
    result = await run_phone_text(live, operator, "--to", live.number)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Give --body, --media, or both." in result.stderr


async def test_a_call_of_the_command_line_rings_a_client_of_the_server(live: LivePlatform, operator: Operator) -> None:
    await transfer_to_client(live)
    said = ("--say", "Thank you", "--say", "I would like to order bread")
    async with register(live) as client:
        dialing = asyncio.create_task(
            run_phone(live, operator, "dial", "--from", PERSON, "--to", live.number, *said, "--json")
        )
        await client.until(event="ringing")
        await send(client, "answer")
        await client.until(voiced=True)
        await send(client, "hang_up")
        await client.until(event="ended")
        result = await dialing
    assert result.returncode == 0, result.stderr
    (call,) = objects_at((await live.caller.get("/v1/calls")).json, "items")
    assert (call["status"], call["transferred_to"]) == ("completed", CLIENT)


async def test_an_unknown_number_is_an_error(live: LivePlatform, operator: Operator) -> None:
    result = await run_phone_text(live, operator, "--to", fresh_number(), "--body", "Hello", "--json")
    assert (result.returncode, result.stdout) == (1, "")
    assert "not a number of any organization" in result.stderr
