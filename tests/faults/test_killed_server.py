"""`kill -9` of the server during a call."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.fixtures.eventually import eventually

pytestmark = pytest.mark.system
TALK_SECONDS = 8
GREETING = f"{'Please wait, because all of our lines are busy at the moment. ' * 12}Thank you."
"""It takes longer than the server lives."""


async def test_a_killed_servers_call_fails_and_keeps_its_transcript(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "SWITCHBOARD_DATA_DIR": str(tmp_path / "data"),
        "SWITCHBOARD_PORT": "18096",
        "SWITCHBOARD_TENANTS_DIR": str(tmp_path),
    }
    platform = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "switchboard", "run", env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert platform.stderr is not None
    draining = None
    try:
        while b"is ready" not in await platform.stderr.readline():
            pass
        while b"Call it" not in (line := await platform.stderr.readline()):
            pass
        command = line.decode().partition("Call it")[2] + (await platform.stderr.readline()).decode()
        draining = asyncio.create_task(platform.stderr.read())
        facts = json.loads((tmp_path / "data" / "dev.json").read_text())
        async with aiohttp.ClientSession(
            facts["base_url"], headers={"Authorization": f"Bearer {facts['api_key']}"}
        ) as session:
            await _run_in_another_terminal(command)
            await _kill_in_mid_call(session)
    finally:
        platform.send_signal(signal.SIGTERM)
        assert await platform.wait() == 0
        printed = (await draining).decode() if draining is not None else ""
    assert "password" in [line for line in printed.splitlines() if line][1], "the last line of the welcome"
    assert '"event": "request"' not in printed
    assert not (tmp_path / "data" / "dev.json").exists()


async def _run_in_another_terminal(command: str) -> None:
    """Run the command that the welcome shows, where none of the platform's settings is set."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SWITCHBOARD_")}
    process = await asyncio.create_subprocess_shell(command, env=environment, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert (process.returncode, b"first reply after" in output) == (0, True), output


async def _kill_in_mid_call(session: aiohttp.ClientSession) -> None:
    agent = (await _get(session, "/v1/agents"))["items"][0]["id"]
    number = (await _get(session, "/v1/phone-numbers"))["items"][0]["id"]
    body = {"agent_id": agent, "to_number": "+15550100070", "from_number_id": number}
    async with session.put(f"/v1/agents/{agent}", json={"greeting_message": GREETING}) as changed:
        assert changed.status == 200
    async with session.post("/v1/calls", json=body) as placed:
        call_id = (await placed.json())["id"]
    await _until(session, f"/v1/calls/{call_id}", lambda found: found["status"] == "in-progress")
    await asyncio.sleep(TALK_SECONDS)
    os.kill(_server(), signal.SIGKILL)
    call = await _until(session, f"/v1/calls/{call_id}", lambda found: found.get("ended_at"))
    assert call["status"] == "failed"
    assert call["error_message"]
    assert call["duration_seconds"] <= TALK_SECONDS + 2, "nobody talked any more"
    (said,) = await _get(session, f"/v1/calls/{call_id}/transcript")
    assert (said["role"], GREETING.startswith(said["content"])) == ("agent", True)
    assert len(said["content"].split()) > 4
    async with session.post("/v1/calls", json={**body, "to_number": "+15550100040"}) as placed:
        again = (await placed.json())["id"]
    assert (await _until(session, f"/v1/calls/{again}", lambda found: found.get("ended_at")))["status"] == "completed"


def _server() -> int:
    """Find the process that serves on this test's port."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command, surroundings = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if command.endswith(b"switchboard\0serve\0") and b"SWITCHBOARD_PORT=18096" in surroundings:
            return int(entry.name)
    raise AssertionError("no server runs")


async def _get(session: aiohttp.ClientSession, path: str):  # type: ignore[no-untyped-def] # JSON of any shape
    async with session.get(path) as answer:
        return await answer.json()


async def _until(session: aiohttp.ClientSession, path: str, good):  # type: ignore[no-untyped-def] # JSON of any shape
    async def look():  # type: ignore[no-untyped-def] # JSON of any shape
        try:
            return await _get(session, path)
        except aiohttp.ClientError:
            return None  # the server is being restarted

    return await eventually(look, lambda found: found is not None and good(found))
