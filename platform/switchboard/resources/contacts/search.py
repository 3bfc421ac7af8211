"""Free-text search: every word of the query occurs in the contact, ignoring case and accents."""

import re
import unicodedata
from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Uuid, any_, func, literal, or_
from sqlmodel import col, select

from switchboard.foundation.database import ReadSession, is_among
from switchboard.resources.contacts.models import Contact, ContactSearch
from switchboard.resources.contacts.schemas import ContactOut, ContactQuery

SEARCHED = ("phone_number", "name", "company", "email", "tags")
REACH, MAX_REACH = 20, 5_000
"""Candidates to collect, as a multiple of the newest contacts needed, and their maximum."""
# Letters that look accented but that Unicode does not decompose.
LOOKALIKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"})


def split_words(text: str) -> list[str]:
    """Return the distinct words of a text in order, without case and accents."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter)).translate(LOOKALIKES)
    return list(dict.fromkeys(plain.split()))


def build_search_columns(contact: Contact | ContactOut) -> dict[str, str]:
    """Return the searchable words of a contact by `ContactSearch` column.

    Notes have a column of their own: long notes are stored out of line and read only if nothing else matches.
    """
    content = "\n".join(filter(None, (getattr(contact, name) for name in SEARCHED)))
    return {"content": " ".join(split_words(content)), "notes": " ".join(split_words(contact.notes or ""))}


async def search_contacts(session: ReadSession, query: ContactQuery) -> tuple[list[Contact], int]:
    """Return a page of the contacts that contain all words of a search, newest first, and the total.

    The counting pass also collects the newest matches. With many matches the page is among them, so that not all have
    to be sorted; with few matches a second pass is cheap.
    """
    wanted = split_words(query.search)
    ours, newest = session.owns(Contact), (col(Contact.created_at).desc(), col(Contact.id).desc())
    matches = [session.owns(ContactSearch), *map(_contains, wanted)]
    if query.phone is not None:
        matches.append(
            col(ContactSearch.id).in_(select(Contact.id).where(ours, col(Contact.phone_number) == query.phone))
        )
    needed = query.offset + query.limit
    oldest = (
        select(Contact.created_at)
        .where(ours)
        .order_by(*newest)
        .offset(min(needed * REACH, MAX_REACH))
        .limit(1)
        .scalar_subquery()
    )
    among_newest = func.array_agg(col(ContactSearch.id), type_=ARRAY(Uuid())).filter(
        or_(oldest.is_(None), col(ContactSearch.created_at) > oldest)
    )
    await _show_only(session, " ".join(wanted))
    total, ids = (await session.exec(select(func.count(), among_newest).where(*matches))).one()
    offset = query.offset
    if len(ids or ()) < min(needed, total):
        last = (col(ContactSearch.created_at).desc(), col(ContactSearch.id).desc())
        part = select(ContactSearch.id).where(*matches).order_by(*last)
        ids, offset = (await session.exec(part.offset(offset).limit(query.limit))).all(), 0
    await _show_only(session, "")
    rows = select(Contact).where(ours, col(Contact.id) == any_(literal(list(ids or ()), ARRAY(Uuid()))))
    return list((await session.exec(rows.order_by(*newest).offset(offset).limit(query.limit))).all()), total


async def keep_matching_ids(session: ReadSession, wanted: list[str], ids: Collection[UUID]) -> set[UUID]:
    """Return those of these contacts that contain all words."""
    rows = select(ContactSearch.id).where(session.owns(ContactSearch), is_among(col(ContactSearch.id), ids))
    return set((await session.exec(rows.where(*map(_contains, wanted)))).all())


def _contains(word: str) -> ColumnElement[bool]:
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", word) + "%"
    return or_(col(ContactSearch.content).like(pattern), col(ContactSearch.notes).like(pattern))


async def _show_only(session: ReadSession, text: str) -> None:
    """Have the table's policy hide rows that cannot match.

    Row-level security keeps a query's own condition out of the index, because it might leak hidden rows; a condition of
    the policy itself may use the index.
    """
    await session.exec(select(func.set_config("app.contact_search", text, True)))
