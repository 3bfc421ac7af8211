"""Business rules of contacts."""

from collections.abc import Sequence
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, TenantTable, WriteSession, now
from switchboard.foundation.web.errors import Conflict, InvalidState
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.resources.contacts import queries, search
from switchboard.resources.contacts.models import Contact, ContactSearch
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactCreate, ContactFilters, ContactOut, ContactUpdate

IMPORT_BATCH = 1_000
TAKEN = "A contact with this phone number exists already."


async def list_contact_batch(
    session: ReadSession, filters: ContactFilters, *, after: TenantTable | None, limit: int
) -> tuple[list[Contact], Contact | None]:
    """Look at the next `limit` contacts after `after`, newest first, and return those that match the filters, and the
    last one looked at, or None at the end of the list.
    """
    seen = await queries.list_contacts_after(session, filters.phone, after=after, limit=limit)
    last = seen[-1] if len(seen) == limit else None
    wanted = search.split_words(filters.search)
    if not wanted:
        return list(seen), last
    matching = await queries.keep_matching_ids(session, wanted, [contact.id for contact in seen])
    return [contact for contact in seen if contact.id in matching], last


async def create_contact(session: WriteSession, data: ContactCreate) -> ContactOut:
    """Create a contact. Raises `Conflict` if the number has one."""
    contact = Contact(organization_id=session.organization_id, **data.model_dump())
    session.add_all([contact, _build_search_row(contact)])
    record_audit(session, AuditAction.CONTACT_CREATED, contact.id, fields=data.model_fields_set)
    await session.flush_or_raise(Conflict(TAKEN))
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
        known = {contact.phone_number: contact for contact in await queries.lock_contacts(session, part)}
        for number in part:
            if number in known:
                updated += await _merge_contact(session, known[number], by_number[number])
            else:
                contact = Contact(organization_id=session.organization_id, **by_number[number].model_dump())
                session.add_all([contact, _build_search_row(contact)])
                created += 1
        await session.flush_or_raise(Conflict(TAKEN))
    record_audit(session, AuditAction.CONTACTS_IMPORTED, f"{created} created, {updated} updated")
    return created, updated


async def _merge_contact(session: WriteSession, contact: Contact, data: ContactCreate) -> bool:
    given = {name: value for name, value in data.model_dump(exclude_unset=True).items() if value is not None}
    if all(getattr(contact, name) == value for name, value in given.items()):
        return False
    contact.sqlmodel_update(given)
    contact.updated_at = now()
    await queries.update_search_row(session, contact.id, search.build_search_columns(contact))
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


async def get_or_create_contact(session: WriteSession, phone_number: str) -> tuple[Contact, bool]:
    """Return the contact with an E.164 number, locked, and whether it was created; concurrent requests get the same."""
    fresh = Contact(organization_id=session.organization_id, phone_number=phone_number)
    created = await session.insert_if_new(fresh)
    if created:
        session.add(_build_search_row(fresh))
    [contact] = await queries.lock_contacts(session, [phone_number])
    return contact, created


async def update_contact(session: WriteSession, contact_id: UUID, data: ContactUpdate) -> Contact:
    """Change the given fields that differ. Raises `NotFound`, and `Conflict` if the new number has a contact."""
    contact = await lock_row(session, Contact, contact_id)
    data = data.keep_changes(ContactOut.model_validate(contact))
    if not data.model_fields_set:
        return contact
    before = search.build_search_columns(contact)
    for field in data.model_fields_set:
        setattr(contact, field, getattr(data, field))
    contact.updated_at = now()
    await session.flush_or_raise(Conflict(TAKEN))
    if (columns := search.build_search_columns(contact)) != before:
        await queries.update_search_row(session, contact.id, columns)
    record_audit(session, AuditAction.CONTACT_UPDATED, contact.id, fields=data.model_fields_set)
    return contact


async def delete_contact(session: WriteSession, contact_id: UUID) -> None:
    """Delete a contact for good; calls and text messages stay. Raises `NotFound`."""
    await session.delete(await get_row(session, Contact, contact_id))
    record_audit(session, AuditAction.CONTACT_DELETED, contact_id)


def _build_search_row(contact: Contact) -> ContactSearch:
    return ContactSearch(
        id=contact.id,
        organization_id=contact.organization_id,
        created_at=contact.created_at,
        **search.build_search_columns(contact),
    )
