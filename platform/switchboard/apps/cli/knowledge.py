"""`knowledge`: the vectors of knowledge bases."""

from uuid import UUID

import click

from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.session import list_organizations, open_runtime
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer, reindex_knowledge_bases


@click.group()
def knowledge() -> None:
    """Knowledge bases."""


@knowledge.command("reindex")
@click.option("--org", "organization_id", type=UUID, help="One organization only.")
@run_with_json
async def reindex_command(organization_id: UUID | None, as_json: bool) -> None:
    """Rebuild all vectors from the stored text with each organization's first embedding model; searches continue
    meanwhile.
    """
    listed = []
    well = True
    async with open_runtime(organization_id) as runtime:
        indexer = DocumentIndexer(runtime.database, runtime.providers)
        for organization in await list_organizations(runtime.database, organization_id):
            try:
                results = await reindex_knowledge_bases(indexer, organization.id)
            except ProviderError as error:
                raise Failure(f"organization {organization.id}: {error.message}") from error
            for result in results:
                well = well and result.error is None
                listed.append(
                    {
                        "organization_id": str(organization.id),
                        "id": str(result.knowledge_base_id),
                        "model": result.model,
                        "documents": result.documents,
                        "passages": result.passages,
                        "error": result.error,
                    }
                )
                if not as_json:
                    summary = f"{result.documents} documents, {result.passages} passages by {result.model}"
                    failure = f", then it failed and stays as it was: {result.error}" if result.error else ""
                    click.echo(f"{result.knowledge_base_id}: {summary}{failure}", err=bool(failure))
    if as_json:
        print_result({"knowledge_bases": listed}, as_json=True)
    if not well:
        raise SystemExit(1)
