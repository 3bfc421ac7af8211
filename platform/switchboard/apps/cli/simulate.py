"""`simulate`: a suite of simulations from a TOML file, so that agents can be tested in CI."""

import asyncio
import tomllib
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import click
from pydantic import JsonValue, ValidationError

from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.foundation.database import Database
from switchboard.foundation.web.errors import InsufficientBalance, InvalidState, ValidationFailed
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.queries import list_agents_named
from switchboard.resources.identity.queries import list_all_organizations
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.jobs import run_simulation
from switchboard.resources.simulations.schemas import SimulationCreate, SimulationOut
from switchboard.runtime import Runtime

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """One `[[simulation]]` table: `agent` is an id or a name."""

    agent: str
    data: SimulationCreate


@click.command("simulate")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--org",
    "organization_id",
    type=UUID,
    help="Organization of the agents; required if there are several organizations.",
)
@run_with_json
async def simulate(file: Path, organization_id: UUID | None, as_json: bool) -> None:
    """Run the simulations of a TOML file: exit status 0 if all pass, 1 if any fails, 2 for an invalid file."""
    cases = read_suite(file)
    async with open_runtime() as runtime:
        organization = organization_id or await _only_organization(runtime.database)
        chosen = [(case, await _agent(runtime.database, organization, case.agent)) for case in cases]
        results = []
        for case, agent in chosen:
            result = await _run(runtime, agent, case.data)
            results.append(result)
            if not as_json:
                _show(agent, result)
    passed = sum(result.status == "passed" for result in results)
    if as_json:
        shown = [result.model_dump(mode="json") for result in results]
        print_result({"passed": passed, "total": len(results), "simulations": shown}, as_json=True)
    else:
        click.echo(f"{passed} of {len(results)} passed")
    if passed < len(results):
        raise SystemExit(1)


def read_suite(file: Path) -> list[Case]:
    """Read a suite. Raises `click.UsageError` that names the error and its place."""
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    tables = content.pop("simulation", None)
    if content:
        raise click.UsageError(f"{file}: {next(iter(content))}: unknown key; simulations are [[simulation]] tables")
    if not isinstance(tables, list) or not tables:
        raise click.UsageError(f"{file}: there is no [[simulation]]")
    return [_case(f"{file}: simulation {number}", table) for number, table in enumerate(tables, 1)]


def _case(location: str, table: dict[str, JsonValue]) -> Case:
    if not isinstance(table, dict):
        raise click.UsageError(f"{location}: must be a [[simulation]] table")
    agent = table.pop("agent", None)
    if not isinstance(agent, str):
        raise click.UsageError(f"{location}: agent: must be an agent's id or name")
    try:
        data = SimulationCreate.model_validate(table)
        data.check()
    except ValidationError as error:
        raise click.UsageError(f"{location}: {ValidationFailed.from_error(error).detail}") from error
    except ValidationFailed as error:
        raise click.UsageError(f"{location}: {error.detail}") from error
    return Case(agent, data)


async def _only_organization(database: Database) -> UUID:
    async with database.system() as session:
        found = await list_all_organizations(session)
    if len(found) != 1:
        raise click.UsageError(
            "there are several organizations: choose one with --org" if found else "there is no organization yet"
        )
    return found[0].id


async def _agent(database: Database, organization_id: UUID, name: str) -> Agent:
    async with database.read(organization_id) as session:
        found = await list_agents_named(session, name)
    if len(found) != 1:
        raise click.UsageError(
            f"agent {name}: several agents have this name: use the id"
            if found
            else f"agent {name}: there is no such agent"
        )
    return found[0]


async def _run(runtime: Runtime, agent: Agent, data: SimulationCreate) -> SimulationOut:
    """Run a simulation here, unless a worker is faster. Mode `text` needs no running server."""
    async with runtime.database.write(agent.organization_id) as session:
        try:
            made = await simulations.create_simulation(session, runtime.registry, agent.id, data)
        except (InsufficientBalance, InvalidState) as error:
            raise Failure(f"{data.name}: {error.detail}") from error
    while True:
        await runtime.call(run_simulation, organization_id=agent.organization_id, simulation_id=made.id)
        async with runtime.database.read(agent.organization_id) as session:
            found = await simulations.get_simulation(session, agent.id, made.id)
        if found.completed_at is not None:
            return SimulationOut.model_validate(found)
        await asyncio.sleep(POLL_SECONDS)


def _show(agent: Agent, result: SimulationOut) -> None:
    score = "" if result.score is None else f"{result.score:.0%}"
    click.echo(f"{result.status:6}  {score:>4}  {result.duration_seconds:4} s  {agent.name}: {result.name}")
    for criterion in result.criteria:
        if not criterion.passed:
            click.echo(f"        {criterion.name}: {criterion.explanation}")
    if result.error_message is not None:
        click.echo(f"        {result.error_message}")
