"""Endpoints of the do-not-call list."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.paging import paginate
from switchboard.foundation.web.schemas import Page
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.do_not_call.queries import select_entries
from switchboard.resources.do_not_call.schemas import DoNotCallCreate, DoNotCallOut, DoNotCallQuery

blueprint = ApiBlueprint("do_not_call", __name__, tags={"do-not-call": "Numbers that are never called or texted."})


@blueprint.get("/v1/do-not-call")
@endpoint(scope="contacts:read")
async def list_do_not_call_entries(session: ReadSession, query: DoNotCallQuery) -> Page[DoNotCallOut]:
    """List the numbers on the do-not-call list.

    The do-not-call endpoints are an addition to the specification.
    """
    return await paginate(
        session, select_entries(session, phone_number=query.phone_number), DoNotCallOut.model_validate, query
    )


@blueprint.post("/v1/do-not-call")
@endpoint(scope="contacts:write", status=201)
async def create_do_not_call_entry(session: WriteSession, data: DoNotCallCreate) -> DoNotCallOut:
    """Add a number to the do-not-call list.

    Calls and text messages to it are refused from now on, and waiting ones end `failed`; inbound calls are answered. A
    number that is listed already is returned unchanged.
    """
    return DoNotCallOut.model_validate(
        await do_not_call.add_entry(session, data.phone_number, source="api", note=data.note)
    )


@blueprint.delete("/v1/do-not-call/<entry_id>")
@endpoint(scope="contacts:write", status=204)
async def delete_do_not_call_entry(session: WriteSession, entry_id: UUID) -> None:
    """Remove an entry from the do-not-call list."""
    await do_not_call.delete_entry(session, entry_id)
