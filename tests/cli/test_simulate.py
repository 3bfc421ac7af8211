"""`switchboard simulate`: the example of docs/how-to/simulations.md, failing suites, and invalid ones."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import click
import pytest
from switchboard.apps.cli.simulate import read_suite

from tests.fixtures.app import Caller
from tests.fixtures.command_line import CommandResult, Operator
from tests.fixtures.servers import REPOSITORY

Simulate: TypeAlias = Callable[..., Awaitable[CommandResult]]

PROMPT = (
    'When the caller says "opening hours": say "We are open from seven to six."\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)


@pytest.fixture
def simulate(caller: Caller, operator: Operator, tmp_path: Path) -> Simulate:
    """Runs a suite for the caller's organization."""

    async def run(suite: str, *options: str) -> CommandResult:
        file = tmp_path / "suite.toml"
        file.write_text(suite)
        return await asyncio.to_thread(
            operator.run, "simulate", str(file), "--org", str(caller.organization_id), *options
        )

    return run


async def test_the_example_suite_passes_and_fails_with_the_agent(caller: Caller, simulate: Simulate) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "simulations.md").read_text()
    example = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    agent = (await caller.post("/v1/agents", {"name": "Bakery", "system_prompt": PROMPT})).json["id"]
    result = await simulate(example)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "1 of 1 passed"), result.stderr
    await caller.send(
        "PUT", f"/v1/agents/{agent}", {"system_prompt": PROMPT.replace("open from seven", "closed from seven")}
    )
    result = await simulate(example, "--json")
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    assert (report["passed"], report["total"], report["simulations"][0]["score"]) == (0, 1, 0.5)


@pytest.mark.parametrize(
    ("suite", "fault"),
    [
        ("[[simulation", "suite.toml: "),
        ("", "there is no [[simulation]]"),
        ('[[simulation]]\nname = "A"', "simulation 1: agent: "),
        (
            '[[simulation]]\nagent = "A"\nname = "A"\nlines = ["B"]\nassertions = [{type = "said"}]',
            "simulation 1: assertions.0.said.text: ",
        ),
        (
            (
                '[[simulation]]\nagent = "A"\nname = "A"\nlines = ["B"]\nassertions = [{type = "latency_under_ms", '
                "milliseconds = 1}]"
            ),
            "assertions.0.type",
        ),
    ],
)
def test_an_invalid_suite_is_refused(tmp_path: Path, suite: str, fault: str) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(suite)
    with pytest.raises(click.UsageError, match=re.escape(fault)):
        read_suite(file)


async def test_an_unknown_agent_is_an_error_in_the_suite(simulate: Simulate) -> None:
    suite = '[[simulation]]\nagent = "A"\nname = "A"\nlines = ["B"]\nassertions = [{type = "said", text = "C"}]'
    result = await simulate(suite)
    assert (result.returncode, result.stdout) == (2, "")
    assert "agent A: there is no such agent" in result.stderr
