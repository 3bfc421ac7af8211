"""Business rules of contacts."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import update as update_rows
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.web.errors import Conflict, NotFound
from switchboard.resources.contacts import search
from switchboard.resources.contacts.models import Contact, ContactSearch
from switchboard.resources.contacts.schemas import ContactCreate, ContactOut, ContactQuery, ContactUpdate


def list_contacts(session: TenantSession, *, phone_number: str | None = None) -> SelectOfScalar[Contact]:
    """Select the organization's contacts."""
    rows = session.select(Contact)
    return rows if phone_number is None else rows.where(col(Contact.phone_number) == phone_number)


async def search_contacts(session: TenantSession, query: ContactQuery) -> tuple[list[Contact], int]:
    """Return a page of the contacts that match a search, newest first, and the total."""
    return await search.find_matching_contacts(
        session, search.split_words(query.search), phone_number=query.phone, query=query
    )


async def get_contact(session: TenantSession, contact_id: UUID, *, lock: bool = False) -> Contact:
    """Return a contact. Raises `NotFound`."""
    rows = list_contacts(session).where(col(Contact.id) == contact_id)
    contact = (await session.exec(rows.with_for_update() if lock else rows)).one_or_none()
    if contact is None:
        raise NotFound
    return contact


async def find_contact_by_number(session: TenantSession, phone_number: str) -> Contact | None:
    """Return the contact with an E.164 number; None if there is none."""
    return (await session.exec(list_contacts(session, phone_number=phone_number))).one_or_none()


async def get_contact_name(session: TenantSession, phone_number: str) -> str | None:
    """Return the name of the contact with an E.164 number; None if there is none."""
    contact = await find_contact_by_number(session, phone_number)
    return (contact.name or None) if contact else None


async def get_contact_names(session: TenantSession, phone_numbers: Collection[str]) -> dict[str, str]:
    """Return the names of the contacts with these E.164 numbers, by number."""
    rows = select(Contact.phone_number, Contact.name).where(session.owns(Contact))
    found = await session.exec(rows.where(col(Contact.phone_number).in_(phone_numbers)))
    return {number: name for number, name in found.all() if name}


async def create_contact(session: TenantSession, data: ContactCreate) -> Contact:
    """Create a contact. Raises `Conflict` if the number has one."""
    contact = Contact(id=new_id(), organization_id=session.organization_id, **data.model_dump())
    session.add(contact)
    await _flush(session)
    row = ContactSearch(
        id=contact.id,
        organization_id=contact.organization_id,
        created_at=contact.created_at,
        **search.build_search_columns(contact),
    )
    session.add(row)
    record_audit(session, AuditAction.CONTACT_CREATED, contact.id, fields=data.model_fields_set)
    return contact


async def get_or_create_contact(session: TenantSession, phone_number: str) -> tuple[Contact, bool]:
    """Return the contact with an E.164 number, locked, and whether it was created; concurrent requests get the same
    one.
    """
    fresh = Contact(id=new_id(), organization_id=session.organization_id, phone_number=phone_number)
    made = (
        insert(Contact)
        .values(fresh.model_dump())
        .on_conflict_do_nothing(index_elements=["organization_id", "phone_number"])
    )
    created = (await session.exec(made)).rowcount == 1
    if created:
        row = ContactSearch(
            id=fresh.id,
            organization_id=fresh.organization_id,
            created_at=fresh.created_at,
            **search.build_search_columns(fresh),
        )
        session.add(row)
    return (await session.exec(list_contacts(session, phone_number=phone_number).with_for_update())).one(), created


async def update_contact(session: TenantSession, contact_id: UUID, data: ContactUpdate) -> Contact:
    """Change the given fields that differ. Raises `NotFound`, and `Conflict` if the new number has a contact."""
    contact = await get_contact(session, contact_id, lock=True)
    data = data.keep_changes(ContactOut.of(contact))
    if not data.model_fields_set:
        return contact
    before = search.build_search_columns(contact)
    for field in data.model_fields_set:
        setattr(contact, field, getattr(data, field))
    contact.updated_at = now()
    await _flush(session)
    if (compared := search.build_search_columns(contact)) != before:
        rows = update_rows(ContactSearch).where(session.owns(ContactSearch), col(ContactSearch.id) == contact.id)
        await session.exec(rows.values(compared))
    record_audit(session, AuditAction.CONTACT_UPDATED, contact.id, fields=data.model_fields_set)
    return contact


async def delete_contact(session: TenantSession, contact_id: UUID) -> None:
    """Delete a contact for good; calls and text messages stay. Raises `NotFound`."""
    await session.delete(await get_contact(session, contact_id))
    record_audit(session, AuditAction.CONTACT_DELETED, contact_id)


async def _flush(session: TenantSession) -> None:
    try:
        await session.flush()
    except IntegrityError:
        raise Conflict("A contact with this phone number exists already.") from None
