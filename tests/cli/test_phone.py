"""`switchboard phone text` against a running platform."""

import asyncio
import json

from tests.fixtures.app import LivePlatform, fresh_number
from tests.fixtures.command_line import Done, Operator
from tests.fixtures.json_access import at, objects_at


async def phone_text(live: LivePlatform, operator: Operator, *arguments: str) -> Done:
    settings = live.runtime.settings
    operator.environment |= {"SWITCHBOARD_DATA_DIR": str(settings.data_dir), "SWITCHBOARD_PORT": str(settings.port)}
    return await asyncio.to_thread(operator.run, "phone", "text", "--from", "+15550100001", *arguments)


async def test_a_text_is_answered(live: LivePlatform, operator: Operator) -> None:
    done = await phone_text(live, operator, "--to", live.number, "--body", "What are your opening hours?")
    assert done.returncode == 0, done.stderr
    assert "We are open from seven to six every day of the week." in done.stdout
    done = await phone_text(live, operator, "--to", live.number, "--body", "STOP", "--json")
    assert done.returncode == 0, done.stderr
    (conversation,) = (await live.caller.get("/v1/sms/conversations")).json["items"]  # type: ignore[misc,str-unpack]
    listed = (await live.caller.get(f"/v1/sms/conversations/{at(conversation, 'id')}/messages")).json["items"]
    assert json.loads(done.stdout) == {
        "message_id": next(item["id"] for item in objects_at(listed) if item["body"] == "STOP")
    }


async def test_a_number_of_nobody(live: LivePlatform, operator: Operator) -> None:
    done = await phone_text(live, operator, "--to", fresh_number(), "--body", "Hello", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not a number of any organization" in done.stderr
