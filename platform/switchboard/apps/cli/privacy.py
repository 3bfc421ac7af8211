"""`privacy export`, `privacy erase`: data subject requests."""

from pathlib import Path
from uuid import UUID

import click
from pydantic import TypeAdapter, ValidationError

from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.web.schemas import PhoneNumberText
from switchboard.resources.identity.service import OPERATOR
from switchboard.resources.privacy.erasure import ErasureRefused, PersonEraser
from switchboard.resources.privacy.export import PersonExporter


class _PhoneNumber(click.ParamType[str]):
    name = "E.164"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return TypeAdapter[str](PhoneNumberText).validate_python(value)
        except ValidationError:
            self.fail("must be an E.164 phone number like +15550100001", param, ctx)


organization = click.option("--org", "organization_id", type=UUID, required=True)
phone = click.option("--phone", "phone_number", type=_PhoneNumber(), required=True, help="The person's number, E.164.")


@click.group()
def privacy() -> None:
    """Data subject requests: everything about one phone number."""


@privacy.command("export")
@organization
@phone
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@run_with_json
async def export(organization_id: UUID, phone_number: str, file: Path, as_json: bool) -> None:
    """Write what an organization has about a phone number to a new ZIP archive, with the recordings."""
    async with open_runtime(organization_id) as runtime:
        try:
            with file.open("xb") as archive:
                counted = await runtime.call(PersonExporter).export(
                    organization_id, phone_number, archive, actor=OPERATOR
                )
        except FileExistsError:
            raise Failure(f"{file} exists already") from None
        except ObjectStoreAway as error:
            raise Failure(f"the store of the recordings cannot be reached: {error}") from None
    print_result({"file": str(file), "rows": dict(counted)}, as_json=as_json)


@privacy.command("erase")
@organization
@phone
@click.confirmation_option(prompt="Calls, recordings, transcripts, and text messages are deleted for good. Erase?")
@run_with_json
async def erase(organization_id: UUID, phone_number: str, as_json: bool) -> None:
    """Erase what an organization has about a phone number. Exit status 1 while a call, for instance, still goes on:
    run the command again when it is over.
    """
    async with open_runtime(organization_id) as runtime:
        try:
            report = await runtime.call(PersonEraser).erase(organization_id, phone_number, actor=OPERATOR)
        except ErasureRefused as error:
            raise Failure(str(error)) from None
        except ObjectStoreAway as error:
            raise Failure(f"the store of the recordings cannot be reached, run the command again: {error}") from None
    print_result(report.model_dump(exclude={"exported"}), as_json=as_json)
    if report.waiting:
        click.echo("Some rows are still in use: run the command again in some minutes.", err=True)
        raise SystemExit(1)
