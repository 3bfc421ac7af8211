"""`voices`: possible values of `tts_voice_id`."""

from dataclasses import asdict
from uuid import UUID

import click

from switchboard.apps.cli.output import print_result, run_with_json
from switchboard.apps.cli.session import list_organizations, open_runtime
from switchboard.engine.providers.instances import list_provider_names
from switchboard.plugin_sdk import ProviderError, TextToSpeechProvider
from switchboard.plugin_sdk.registry import Capability


@click.command()
@click.option("--org", "organization_id", type=UUID, help="One organization only.")
@run_with_json
async def voices(organization_id: UUID | None, as_json: bool) -> None:
    """List the voices of the text-to-speech providers. Exit status 1 if one does not answer."""
    found: list[dict[str, str | None]] = []
    faults: list[dict[str, str]] = []
    async with open_runtime(organization_id) as runtime:
        for organization in await list_organizations(runtime.database, organization_id):
            async with runtime.database.read(organization.id) as session:
                names = await list_provider_names(session, Capability.TEXT_TO_SPEECH)
            for name in names:
                labels = {"organization_id": str(organization.id), "provider": name}
                rows: list[dict[str, str | None]] = []
                try:
                    async with runtime.providers.use(organization.id, TextToSpeechProvider, name) as speaker:
                        rows = [asdict(voice) for voice in await speaker.list_voices()]
                except ProviderError as error:
                    faults.append({**labels, "message": error.message})
                found += [{**labels, **row} for row in rows]
                if as_json:
                    continue
                click.echo(f"{organization.name}: {name}")
                for row in rows:
                    about = ", ".join(filter(None, (row[part] for part in ("name", "language", "gender"))))
                    click.echo(f"  {row['id']}  {about}")
    if as_json:
        print_result({"voices": found, "faults": faults}, as_json=True)
    for fault in faults:
        click.echo(f"switchboard: {fault['provider']}: {fault['message']}", err=True)
    if faults:
        raise SystemExit(1)
