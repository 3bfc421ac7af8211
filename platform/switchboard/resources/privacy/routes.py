"""Endpoints of privacy requests, and the links to the files of exports."""

from functools import partial
from uuid import UUID

from quart import Response

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.privacy import service as privacy
from switchboard.resources.privacy.export_files import ExportFiles
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.resources.privacy.schemas import ExportLinkOut, PrivacyRequestCreate, PrivacyRequestOut

blueprint = ApiBlueprint(
    "privacy", __name__, tags={"privacy-requests": "Copies of a person's data, and its deletion, by phone number."}
)


@blueprint.get("/v1/privacy-requests")
@endpoint(scope="privacy:write")
async def list_privacy_requests(session: ReadSession, query: PageQuery, keyring: KeyRing) -> Page[PrivacyRequestOut]:
    """List privacy requests.

    The privacy request endpoints, and their scope, are an addition to the specification. Only owners have the scope.
    """
    show = partial(privacy.describe_privacy_request, keyring)
    return await paginate(session, session.select(PrivacyRequest), show, query)


@blueprint.post("/v1/privacy-requests")
@endpoint(scope="privacy:write", status=201, errors=[InvalidState])
async def create_privacy_request(
    session: WriteSession, data: PrivacyRequestCreate, keyring: KeyRing
) -> PrivacyRequestOut:
    """Request a copy of a person's data, or its deletion.

    A job carries the request out, and `report` counts the rows. 409 for an erasure while the organization is under a
    legal hold, or while its configuration names the number.
    """
    created = await privacy.create_privacy_request(session, data, keyring=keyring)
    return privacy.describe_privacy_request(keyring, created)


@blueprint.get("/v1/privacy-requests/<request_id>")
@endpoint(scope="privacy:write")
async def get_privacy_request(session: ReadSession, request_id: UUID, keyring: KeyRing) -> PrivacyRequestOut:
    """Get a privacy request."""
    return privacy.describe_privacy_request(keyring, await get_row(session, PrivacyRequest, request_id))


@blueprint.get("/v1/privacy-requests/<request_id>/export-url")
@endpoint(scope="privacy:write")
async def get_export_url(session: WriteSession, request_id: UUID, files: ExportFiles) -> ExportLinkOut:
    """Get a link to the file of an export.

    The link needs no credential and is valid for 15 minutes. The file is deleted seven days after the export.
    """
    return files.build_link(await privacy.read_export_file(session, request_id))


@blueprint.get("/exports/<token>")
@inject
async def follow_export_link(token: str, files: ExportFiles) -> Response:
    """Stream the file of a link."""
    return await files.respond(token)
