"""`knowledge`: the vectors of knowledge bases."""

from uuid import UUID

import click
from pydantic import JsonValue
from sqlmodel import col, select

from switchboard.apps.cli.output import Failure, as_json, print_result, run_async
from switchboard.apps.cli.session import open_runtime
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.identity.models import Organization
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer, ReindexResult, reindex_knowledge_bases


@click.group()
def knowledge() -> None:
    """Knowledge bases."""


@knowledge.command("reindex")
@click.option("--org", "organization_id", type=UUID, help="One organization only.")
@as_json
@run_async
async def reindex_command(organization_id: UUID | None, as_json: bool) -> None:
    """Rebuild all vectors from the stored text with each organization's first embedding model; searches continue
    meanwhile.
    """
    listed: list[JsonValue] = []
    well = True
    async with open_runtime() as runtime:
        for one in await list_organizations(runtime.database, organization_id):
            try:
                results = await reindex_knowledge_bases(DocumentIndexer(runtime.database, runtime.providers), one)
            except ProviderError as error:
                raise Failure(f"organization {one}: {error.message}") from error
            for result in results:
                well = well and result.error is None
                listed.append({"organization_id": str(one), **_to_json(result)})
                if not as_json:
                    click.echo(_line(result), err=result.error is not None)
    if as_json:
        print_result({"knowledge_bases": listed}, as_json=True)
    if not well:
        raise SystemExit(1)


async def list_organizations(database: Database, organization_id: UUID | None) -> list[UUID]:
    """Return one organization, or all. Raises `Failure` if there is no such organization."""
    rows = select(Organization.id).order_by(col(Organization.created_at))
    async with database.system() as session:
        found = list(
            (
                await session.exec(
                    rows if organization_id is None else rows.where(col(Organization.id) == organization_id)
                )
            ).all()
        )
    if organization_id is not None and not found:
        raise Failure(f"there is no organization {organization_id}")
    return found


def _to_json(result: ReindexResult) -> dict[str, JsonValue]:
    return {
        "id": str(result.knowledge_base_id),
        "model": result.model,
        "documents": result.documents,
        "passages": result.passages,
        "error": result.error,
    }


def _line(result: ReindexResult) -> str:
    summary = f"{result.knowledge_base_id}: {result.documents} documents, {result.passages} passages by {result.model}"
    return summary if result.error is None else f"{summary}, then it failed and stays as it was: {result.error}"
