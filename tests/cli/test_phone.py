"""`switchboard phone text` against a platform that is up."""

import asyncio
import json
import os
import sys

from switchboard.embedded import DataDirectory

from tests.fixtures.app import LivePlatform, fresh_number


async def phone_text(live: LivePlatform, servers: DataDirectory, *arguments: str) -> tuple[int, str, str]:
    settings = live.runtime.settings
    environment = {
        **os.environ,
        "SWITCHBOARD_DATA_DIR": str(settings.data_dir),
        "SWITCHBOARD_PORT": str(settings.port),
        "SWITCHBOARD_DATABASE_URL": servers.database_url,
        "SWITCHBOARD_REDIS_URL": servers.redis_url,
    }
    command = [sys.executable, "-m", "switchboard", "phone", "text", "--from", "+15550100001", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=pipe, stderr=pipe)
    out, error = await process.communicate()
    return process.returncode or 0, out.decode(), error.decode()


async def test_a_text_is_answered(live: LivePlatform, servers: DataDirectory) -> None:
    status, out, error = await phone_text(live, servers, "--to", live.number, "--body", "What are your opening hours?")
    assert status == 0, error
    assert "We are open from seven to six every day of the week." in out
    status, out, error = await phone_text(live, servers, "--to", live.number, "--body", "STOP", "--json")
    assert status == 0, error
    (conversation,) = (await live.caller.get("/v1/sms/conversations")).json["items"]  # type: ignore[misc,str-unpack]
    listed = (await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")).json["items"]  # type: ignore[index,call-overload]
    assert json.loads(out) == {"message_id": next(item["id"] for item in listed if item["body"] == "STOP")}  # type: ignore[union-attr,index,call-overload]


async def test_a_number_of_nobody(live: LivePlatform, servers: DataDirectory) -> None:
    status, out, error = await phone_text(live, servers, "--to", fresh_number(), "--body", "Hello", "--json")
    assert (status, out) == (1, "")
    assert "not a number of any organization" in error
