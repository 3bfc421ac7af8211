"""`voices`: possible values of `tts_voice_id`."""

from uuid import UUID

import click
from pydantic import JsonValue
from sqlmodel import col, select

from switchboard.apps.cli.output import Failure, as_json, print_result, run_async
from switchboard.apps.cli.session import open_runtime
from switchboard.engine.providers.instances import Providers, list_provider_names
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import ProviderError, TextToSpeechProvider
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.identity.models import Organization

Row = dict[str, JsonValue]


@click.command()
@click.option("--org", "organization_id", type=UUID, help="One organization only.")
@as_json
@run_async
async def voices(organization_id: UUID | None, as_json: bool) -> None:
    """List the voices of the text-to-speech providers. Exit status 1 if one does not answer."""
    found: list[JsonValue] = []
    faults: list[JsonValue] = []
    async with open_runtime() as runtime:
        for organization in await _organizations(runtime.database, organization_id):
            async with runtime.database.tenant(organization.id) as session:
                names = await list_provider_names(session, Capability.TEXT_TO_SPEECH)
            for name in names:
                labels: Row = {"organization_id": str(organization.id), "provider": name}
                try:
                    rows = await _voices(runtime.providers, organization.id, name)
                except ProviderError as error:
                    faults.append({**labels, "message": error.message})
                    rows = []
                found += [{**labels, **row} for row in rows]
                if not as_json:
                    _show(f"{organization.name}: {name}", rows)
    if as_json:
        print_result({"voices": found, "faults": faults}, as_json=True)
    for fault in faults:
        click.echo(f"switchboard: {fault['provider']}: {fault['message']}" if isinstance(fault, dict) else "", err=True)
    if faults:
        raise SystemExit(1)


async def _organizations(database: Database, organization_id: UUID | None) -> list[Organization]:
    rows = select(Organization).order_by(col(Organization.created_at))
    if organization_id is not None:
        rows = rows.where(col(Organization.id) == organization_id)
    async with database.system() as session:
        found = list((await session.exec(rows)).all())
    if organization_id is not None and not found:
        raise Failure(f"there is no organization {organization_id}")
    return found


async def _voices(providers: Providers, organization_id: UUID, name: str) -> list[Row]:
    async with providers.use(organization_id, TextToSpeechProvider, name) as speaker:
        listed = await speaker.list_voices()
    return [
        {"id": voice.id, "name": voice.name, "language": voice.language, "gender": voice.gender} for voice in listed
    ]


def _show(heading: str, rows: list[Row]) -> None:
    click.echo(heading)
    for row in rows:
        about = ", ".join(str(row[part]) for part in ("name", "language", "gender") if row[part])
        click.echo(f"  {row['id']}  {about}")
