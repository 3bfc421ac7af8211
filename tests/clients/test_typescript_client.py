"""The TypeScript client: its own tests, and its examples against the platform."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.app import LivePlatform
from tests.fixtures.debian_tools import find_node_tool, find_tool
from tests.fixtures.servers import REPOSITORY

PACKAGE = REPOSITORY / "clients" / "typescript"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled client, in a folder of its own, so that test processes do not write to one another's."""
    folder = tmp_path_factory.mktemp("typescript")
    subprocess.run([find_node_tool("tsc"), "--outDir", folder], cwd=PACKAGE, check=True)
    shutil.copy(PACKAGE / "package.json", folder)
    return folder


async def run_node(*arguments: str | Path, **environment: str) -> str:
    """Run Node.js to its end, and return its output."""
    process = await asyncio.create_subprocess_exec(
        find_tool("node"),
        *arguments,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, (output + errors).decode()
    return output.decode()


async def run_example(live: LivePlatform, program: Path, *arguments: str) -> str:
    return await run_node(program, *arguments, API_KEY=live.caller.key, BASE_URL=live.runtime.settings.base_url)


async def test_its_own_tests_pass(compiled: Path) -> None:
    assert "# fail 0" in await run_node("--test", "--test-reporter=tap", compiled / "tests")


async def test_a_call_is_placed_and_its_transcript_read(live: LivePlatform, compiled: Path) -> None:
    transcript = await run_example(
        live, compiled / "examples" / "place_call.js", live.agent_id, live.number_id, "+15550100001"
    )
    assert "this is the bakery on the corner." in transcript


@pytest.mark.local_receivers
async def test_a_delivery_is_verified(live: LivePlatform, compiled: Path) -> None:
    event = json.loads(await run_example(live, compiled / "examples" / "receive_events.js"))
    assert (event["event"], event["data"]["metadata"]) == ("call.completed", {"test": True})
