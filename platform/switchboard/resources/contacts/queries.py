"""Statements about contacts, and of the search for their words."""

import re
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Uuid, func, or_
from sqlmodel import col, select, update
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, TenantTable, WriteSession, is_among
from switchboard.foundation.web.paging import select_after
from switchboard.resources.contacts.models import Contact, ContactSearch


def select_contacts(session: ReadSession, *, phone_number: str | None = None) -> SelectOfScalar[Contact]:
    rows = session.select(Contact)
    return rows if phone_number is None else rows.where(col(Contact.phone_number) == phone_number)


async def list_contacts_after(
    session: ReadSession, phone_number: str | None, *, after: TenantTable | None, limit: int
) -> Sequence[Contact]:
    """List the next contacts after `after`, newest first."""
    rows = select_after(select_contacts(session, phone_number=phone_number), after)
    return (await session.exec(rows.limit(limit))).all()


async def list_contacts_by_id(session: ReadSession, contact_ids: Collection[UUID]) -> list[Contact]:
    """List the contacts with these ids; unknown ids are left out."""
    return list((await session.exec(select_contacts(session).where(is_among(col(Contact.id), contact_ids)))).all())


async def find_contact_by_number(session: ReadSession, phone_number: str) -> Contact | None:
    """Return the contact with an E.164 number; None if there is none."""
    return (await session.exec(select_contacts(session, phone_number=phone_number))).one_or_none()


async def lock_contacts(session: WriteSession, phone_numbers: Collection[str]) -> Sequence[Contact]:
    """Lock and return the contacts with these E.164 numbers."""
    rows = select_contacts(session).where(is_among(col(Contact.phone_number), phone_numbers))
    return (await session.exec(rows.with_for_update())).all()


async def get_contact_names(session: ReadSession, phone_numbers: Collection[str]) -> dict[str, str]:
    """Return the names of the contacts with these E.164 numbers, by number."""
    rows = select(Contact.phone_number, Contact.name).where(session.owns(Contact))
    found = await session.exec(rows.where(is_among(col(Contact.phone_number), phone_numbers)))
    return {number: name for number, name in found.all() if name}


async def get_contact_name(session: ReadSession, phone_number: str) -> str | None:
    """Return the name of the contact with an E.164 number; None if there is none."""
    return (await get_contact_names(session, (phone_number,))).get(phone_number)


# Search.

_NEWEST = col(Contact.created_at).desc(), col(Contact.id).desc()


async def show_only_matches(session: ReadSession, words: Collection[str]) -> None:
    """Have the policy of the table of words hide the rows that cannot match; without words, none.

    Row-level security keeps a query's own condition out of the index, because it might leak hidden rows; a condition of
    the policy itself may use the index.
    """
    await session.exec(select(func.set_config("app.contact_search", " ".join(words), True)))


async def count_matches(
    session: ReadSession, words: Collection[str], phone_number: str | None, *, reach: int
) -> tuple[int, Sequence[UUID]]:
    """Count the contacts that contain all words, and return the ids of those among the newest `reach` contacts."""
    oldest = (
        select(Contact.created_at)
        .where(session.owns(Contact))
        .order_by(*_NEWEST)
        .offset(reach)
        .limit(1)
        .scalar_subquery()
    )
    among_newest = func.array_agg(col(ContactSearch.id), type_=ARRAY(Uuid())).filter(
        or_(oldest.is_(None), col(ContactSearch.created_at) > oldest)
    )
    matches = _match(session, words, phone_number)
    total, ids = (await session.exec(select(func.count(), among_newest).where(*matches))).one()
    return total, ids or ()


async def list_matching_ids(
    session: ReadSession, words: Collection[str], phone_number: str | None, *, offset: int, limit: int
) -> Sequence[UUID]:
    """List a page of the ids of the contacts that contain all words, newest first."""
    rows = select(ContactSearch.id).where(*_match(session, words, phone_number))
    newest = col(ContactSearch.created_at).desc(), col(ContactSearch.id).desc()
    return (await session.exec(rows.order_by(*newest).offset(offset).limit(limit))).all()


async def list_newest_contacts(
    session: ReadSession, contact_ids: Collection[UUID], *, offset: int, limit: int
) -> list[Contact]:
    """List a page of the contacts with these ids, newest first."""
    rows = select_contacts(session).where(is_among(col(Contact.id), contact_ids))
    return list((await session.exec(rows.order_by(*_NEWEST).offset(offset).limit(limit))).all())


async def keep_matching_ids(
    session: ReadSession, words: Collection[str], contact_ids: Collection[UUID]
) -> Collection[UUID]:
    """Return those of these contacts that contain all words."""
    rows = select(ContactSearch.id).where(is_among(col(ContactSearch.id), contact_ids))
    return set((await session.exec(rows.where(*_match(session, words, None)))).all())


async def update_search_row(session: WriteSession, contact_id: UUID, columns: Mapping[str, str]) -> None:
    """Replace the words of a contact."""
    rows = update(ContactSearch).where(session.owns(ContactSearch), col(ContactSearch.id) == contact_id)
    await session.exec(rows.values(columns))


def _match(session: ReadSession, words: Collection[str], phone_number: str | None) -> list[ColumnElement[bool]]:
    matches = [session.owns(ContactSearch), *map(_contains, words)]
    if phone_number is not None:
        same = select(Contact.id).where(session.owns(Contact), col(Contact.phone_number) == phone_number)
        matches.append(col(ContactSearch.id).in_(same))
    return matches


def _contains(word: str) -> ColumnElement[bool]:
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", word) + "%"
    return or_(col(ContactSearch.content).like(pattern), col(ContactSearch.notes).like(pattern))
