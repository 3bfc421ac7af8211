"""`switchboard simulate`: the example of docs/simulations.md, and what becomes of suites that fail or cannot be used."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import click
import pytest
from switchboard.cli.simulate import read
from switchboard.embedded import DataDirectory

from tests.fixtures.app import Caller
from tests.fixtures.servers import REPOSITORY

PROMPT = (
    'When the caller says "opening hours": say "We are open from seven to six."\nWhen the caller says "goodbye": say "Goodbye." and call end_call'
)


async def simulate(caller: Caller, servers: DataDirectory, folder: Path, suite: str, *options: str) -> tuple[int, str, str]:
    file = folder / "suite.toml"
    file.write_text(suite)
    environment = {
        **os.environ,
        "SWITCHBOARD_DATA_DIR": str(folder / "data"),
        "SWITCHBOARD_DATABASE_URL": servers.database_url,
        "SWITCHBOARD_REDIS_URL": servers.redis_url,
    }
    command = [sys.executable, "-m", "switchboard", "simulate", str(file), "--org", str(caller.organization_id), *options]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=pipe, stderr=pipe)
    out, error = await process.communicate()
    return process.returncode or 0, out.decode(), error.decode()


async def test_the_example_passes_and_fails_with_the_agent(caller: Caller, servers: DataDirectory, tmp_path: Path) -> None:
    example = re.findall(r"```toml\n(.*?)```", (REPOSITORY / "docs" / "simulations.md").read_text(), re.DOTALL)[0]
    agent = (await caller.post("/v1/agents", {"name": "Bakery", "system_prompt": PROMPT})).json["id"]
    status, out, error = await simulate(caller, servers, tmp_path, example)
    assert (status, out.splitlines()[-1]) == (0, "1 of 1 passed"), error
    await caller.send("PUT", f"/v1/agents/{agent}", {"system_prompt": PROMPT.replace("open from seven", "closed from seven")})
    status, out, error = await simulate(caller, servers, tmp_path, example, "--json")
    assert status == 1, error
    found = json.loads(out)
    assert (found["passed"], found["total"], found["simulations"][0]["score"]) == (0, 1, 0.5)


@pytest.mark.parametrize(
    ("suite", "fault"),
    [
        ("[[simulation", "suite.toml: "),
        ("", "there is no [[simulation]]"),
        ('[[simulation]]\nname = "A"', "simulation 1: agent: "),
        ('[[simulation]]\nagent = "A"\nname = "A"\nlines = ["B"]\nassertions = [{type = "said"}]', "simulation 1: assertions.0.said.text: "),
        ('[[simulation]]\nagent = "A"\nname = "A"\nlines = ["B"]\nassertions = [{type = "latency_under_ms", milliseconds = 1}]', "assertions.0.type"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, suite: str, fault: str) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(suite)
    with pytest.raises(click.UsageError, match=re.escape(fault)):
        read(file)


async def test_an_agent_that_is_not_there_is_a_fault_of_the_file(caller: Caller, servers: DataDirectory, tmp_path: Path) -> None:
    suite = '[[simulation]]\nagent = "A"\nname = "A"\nlines = ["B"]\nassertions = [{type = "said", text = "C"}]'
    status, out, error = await simulate(caller, servers, tmp_path, suite)
    assert (status, out) == (2, "")
    assert "agent A: there is none" in error
