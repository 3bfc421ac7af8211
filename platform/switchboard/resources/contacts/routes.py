"""Endpoints of contacts."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import Conflict
from switchboard.foundation.web.paging import get_row_answer, paginate, paginate_table
from switchboard.foundation.web.schemas import Page
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.queries import select_contacts
from switchboard.resources.contacts.schemas import ContactCreate, ContactOut, ContactQuery, ContactUpdate
from switchboard.resources.contacts.search import search_contacts

blueprint = ApiBlueprint("contacts", __name__, tags={"contacts": "The people that the organization talks to."})


@blueprint.get("/v1/contacts")
@endpoint(scope="contacts:read")
async def list_contacts(session: ReadSession, query: ContactQuery) -> Page[ContactOut]:
    """List contacts.

    `search` ignores case and accents, and matches parts of words and numbers.
    """
    if not query.search and query.phone is None:
        return await paginate_table(session, Contact, ContactOut, query)
    if not query.search:
        return await paginate(
            session, select_contacts(session, phone_number=query.phone), ContactOut.model_validate, query
        )
    part, total = await search_contacts(session, query)
    items = [ContactOut.model_validate(contact) for contact in part]
    return Page[ContactOut].model_construct(items=items, total=total, limit=query.limit, offset=query.offset)


@blueprint.post("/v1/contacts")
@endpoint(scope="contacts:write", status=201, errors=[Conflict])
async def create_contact(session: WriteSession, data: ContactCreate) -> ContactOut:
    """Create a contact.

    An organization has one contact per phone number.
    """
    return await contacts.create_contact(session, data)


@blueprint.get("/v1/contacts/<contact_id>")
@endpoint(scope="contacts:read")
async def get_contact(session: ReadSession, contact_id: UUID) -> ContactOut:
    """Get a contact."""
    return await get_row_answer(session, Contact, ContactOut, contact_id)


@blueprint.patch("/v1/contacts/<contact_id>")
@endpoint(scope="contacts:write", errors=[Conflict])
async def update_contact(session: WriteSession, contact_id: UUID, data: ContactUpdate) -> ContactOut:
    """Update a contact.

    Only the given fields change; null clears a text.
    """
    return ContactOut.model_validate(await contacts.update_contact(session, contact_id, data))


@blueprint.delete("/v1/contacts/<contact_id>")
@endpoint(scope="contacts:write", status=204)
async def delete_contact(session: WriteSession, contact_id: UUID) -> None:
    """Delete a contact.

    This cannot be undone. Calls and text messages with the phone number stay.
    """
    await contacts.delete_contact(session, contact_id)
