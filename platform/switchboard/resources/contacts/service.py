"""Business rules of contacts."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import update as update_rows
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, TenantTable, WriteSession, is_among, new_id, now
from switchboard.foundation.web.errors import Conflict, InvalidState
from switchboard.foundation.web.paging import get_row, select_after
from switchboard.resources.contacts import search
from switchboard.resources.contacts.models import Contact, ContactSearch
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactCreate, ContactFilters, ContactOut, ContactUpdate

IMPORT_BATCH = 1_000


def list_contacts(session: ReadSession, *, phone_number: str | None = None) -> SelectOfScalar[Contact]:
    """Select the organization's contacts."""
    rows = session.select(Contact)
    return rows if phone_number is None else rows.where(col(Contact.phone_number) == phone_number)


async def list_contact_batch(
    session: ReadSession, filters: ContactFilters, *, after: TenantTable | None, limit: int
) -> tuple[list[Contact], Contact | None]:
    """Look at the next `limit` contacts after `after`, newest first, and return those that match the filters, and the
    last one looked at, or None at the end of the list.
    """
    rows = select_after(list_contacts(session, phone_number=filters.phone), after).limit(limit)
    seen = (await session.exec(rows)).all()
    last = seen[-1] if len(seen) == limit else None
    wanted = search.split_words(filters.search)
    if not wanted:
        return list(seen), last
    matching = await search.keep_matching_ids(session, wanted, [contact.id for contact in seen])
    return [contact for contact in seen if contact.id in matching], last


async def get_contact(session: ReadSession, contact_id: UUID, *, lock: bool = False) -> Contact:
    """Return a contact. Raises `NotFound`."""
    return await get_row(session, Contact, contact_id, lock=lock)


async def find_contact_by_number(session: ReadSession, phone_number: str) -> Contact | None:
    """Return the contact with an E.164 number; None if there is none."""
    return (await session.exec(list_contacts(session, phone_number=phone_number))).one_or_none()


async def get_contact_name(session: ReadSession, phone_number: str) -> str | None:
    """Return the name of the contact with an E.164 number; None if there is none."""
    return (await get_contact_names(session, (phone_number,))).get(phone_number)


async def get_contact_names(session: ReadSession, phone_numbers: Collection[str]) -> dict[str, str]:
    """Return the names of the contacts with these E.164 numbers, by number."""
    rows = select(Contact.phone_number, Contact.name).where(session.owns(Contact))
    found = await session.exec(rows.where(is_among(col(Contact.phone_number), phone_numbers)))
    return {number: name for number, name in found.all() if name}


async def create_contact(session: WriteSession, data: ContactCreate) -> ContactOut:
    """Create a contact. Raises `Conflict` if the number has one."""
    contact = Contact(organization_id=session.organization_id, **data.model_dump())
    session.add_all([contact, _build_search_row(contact)])
    record_audit(session, AuditAction.CONTACT_CREATED, contact.id, fields=data.model_fields_set)
    with _report_conflict():
        await session.flush()
    return ContactOut.model_validate(contact)


async def import_contacts(session: WriteSession, given: Sequence[ContactCreate]) -> tuple[int, int]:
    """Create contacts, and update those whose number has one by the fields that are not empty. Of several with one
    number, the first counts. Returns the numbers of created and updated contacts.
    """
    by_number: dict[str, ContactCreate] = {}
    for data in given:
        by_number.setdefault(data.phone_number, data)
    numbers, created, updated = list(by_number), 0, 0
    for start in range(0, len(numbers), IMPORT_BATCH):
        part = numbers[start : start + IMPORT_BATCH]
        rows = list_contacts(session).where(is_among(col(Contact.phone_number), part)).with_for_update()
        known = {contact.phone_number: contact for contact in (await session.exec(rows)).all()}
        for number in part:
            if number in known:
                updated += await _merge_contact(session, known[number], by_number[number])
            else:
                contact = Contact(
                    id=new_id(), organization_id=session.organization_id, **by_number[number].model_dump()
                )
                session.add_all([contact, _build_search_row(contact)])
                created += 1
        with _report_conflict():
            await session.flush()
    record_audit(session, AuditAction.CONTACTS_IMPORTED, f"{created} created, {updated} updated")
    return created, updated


async def _merge_contact(session: WriteSession, contact: Contact, data: ContactCreate) -> bool:
    given = {name: value for name, value in data.model_dump(exclude_unset=True).items() if value is not None}
    if all(getattr(contact, name) == value for name, value in given.items()):
        return False
    contact.sqlmodel_update(given)
    contact.updated_at = now()
    await _update_search(session, contact)
    return True


async def add_tag(session: WriteSession, contact: Contact, tag: str) -> bool:
    """Add a tag; return whether the contact did not have it in any letter case. Raises `InvalidState` for too many."""
    tags = [known.strip() for known in (contact.tags or "").split(",") if known.strip()]
    if tag.casefold() in {known.casefold() for known in tags}:
        return False
    joined = ", ".join([*tags, tag])
    if len(joined) > MAX_LABEL:
        raise InvalidState(f"the contact's tags would have more than {MAX_LABEL} characters")
    await update_contact(session, contact.id, ContactUpdate(tags=joined))
    return True


async def list_contacts_by_id(session: ReadSession, contact_ids: Collection[UUID]) -> list[Contact]:
    """List the contacts with these ids; unknown ids are left out."""
    return list((await session.exec(list_contacts(session).where(is_among(col(Contact.id), contact_ids)))).all())


async def get_or_create_contact(session: WriteSession, phone_number: str) -> tuple[Contact, bool]:
    """Return the contact with an E.164 number, locked, and whether it was created; concurrent requests get the same."""
    fresh = Contact(id=new_id(), organization_id=session.organization_id, phone_number=phone_number)
    made = (
        insert(Contact)
        .values(fresh.model_dump())
        .on_conflict_do_nothing(index_elements=["organization_id", "phone_number"])
    )
    created = (await session.exec(made)).rowcount == 1
    if created:
        session.add(_build_search_row(fresh))
    return (await session.exec(list_contacts(session, phone_number=phone_number).with_for_update())).one(), created


async def update_contact(session: WriteSession, contact_id: UUID, data: ContactUpdate) -> Contact:
    """Change the given fields that differ. Raises `NotFound`, and `Conflict` if the new number has a contact."""
    contact = await get_contact(session, contact_id, lock=True)
    data = data.keep_changes(ContactOut.model_validate(contact))
    if not data.model_fields_set:
        return contact
    before = search.build_search_columns(contact)
    for field in data.model_fields_set:
        setattr(contact, field, getattr(data, field))
    contact.updated_at = now()
    with _report_conflict():
        await session.flush()
    if search.build_search_columns(contact) != before:
        await _update_search(session, contact)
    record_audit(session, AuditAction.CONTACT_UPDATED, contact.id, fields=data.model_fields_set)
    return contact


async def delete_contact(session: WriteSession, contact_id: UUID) -> None:
    """Delete a contact for good; calls and text messages stay. Raises `NotFound`."""
    await session.delete(await get_contact(session, contact_id))
    record_audit(session, AuditAction.CONTACT_DELETED, contact_id)


def _build_search_row(contact: Contact) -> ContactSearch:
    return ContactSearch(organization_id=contact.organization_id, **_build_search_values(contact))


def _build_search_values(contact: Contact | ContactOut) -> dict[str, Any]:
    return {"id": contact.id, "created_at": contact.created_at, **search.build_search_columns(contact)}


async def _update_search(session: WriteSession, contact: Contact) -> None:
    rows = update_rows(ContactSearch).where(session.owns(ContactSearch), col(ContactSearch.id) == contact.id)
    await session.exec(rows.values(search.build_search_columns(contact)))


@contextmanager
def _report_conflict() -> Iterator[None]:
    """Raise `Conflict` for a phone number that has a contact."""
    try:
        yield
    except IntegrityError:
        raise Conflict("A contact with this phone number exists already.") from None
