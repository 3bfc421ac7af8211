"""Free-text search: every word of the query occurs somewhere in a contact, case and accents ignored."""

import re
import unicodedata
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, func
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.contacts.models import Contact, ContactSearch

SEARCHED = ("phone_number", "name", "company", "email", "tags", "notes")
# Letters that look like an accented one, but that Unicode does not take apart.
LOOKALIKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"})


def words(text: str) -> list[str]:
    """A text's words in order, each once, without case and accents."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter)).translate(LOOKALIKES)
    return list(dict.fromkeys(plain.split()))


def content(contact: Contact) -> str:
    """What is compared of a contact: its words, each once."""
    return " ".join(words("\n".join(filter(None, (getattr(contact, name) for name in SEARCHED)))))


async def find(session: AsyncSession, wanted: list[str], *, phone_number: str | None, limit: int, offset: int) -> tuple[list[UUID], int]:
    """The ids of a part of the contacts that hold all of `words`' words, newest first, and how many there are in all.

    One pass over what the index offers counts and sorts: where all contacts match, a second pass would double the time.
    """
    organization_id = session.info["organization_id"]
    rows = select(ContactSearch.id, ContactSearch.created_at).where(col(ContactSearch.organization_id) == organization_id)
    rows = rows.where(*(col(ContactSearch.content).like(f"%{_literal(word)}%") for word in wanted))
    if phone_number is not None:
        of_number = select(Contact.id).where(col(Contact.organization_id) == organization_id, col(Contact.phone_number) == phone_number)
        rows = rows.where(col(ContactSearch.id).in_(of_number))
    found = rows.cte("found")
    part = select(found.c.id).order_by(found.c.created_at.desc(), found.c.id.desc()).limit(limit).offset(offset)
    total = select(func.count()).select_from(found).scalar_subquery()
    await _show_only(session, " ".join(wanted))
    ids, number = (await session.exec(select(func.array(part.scalar_subquery(), type_=ARRAY(Uuid())), total))).one()
    await _show_only(session, "")
    return list(ids), number


async def _show_only(session: AsyncSession, text: str) -> None:
    """Have the table's policy hide what cannot match.

    Row-level security lets no condition of a query into an index of letters, because it might tell about rows that are not shown; a
    condition of the policy itself is let in.
    """
    await session.exec(select(func.set_config("app.contact_search", text, True)))


def _literal(word: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", word)
