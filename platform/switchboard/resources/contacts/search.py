"""Free-text search: every word of the query occurs somewhere in a contact, case and accents ignored."""

import re
import unicodedata

from sqlalchemy import ARRAY, Uuid, any_, func, literal, or_
from sqlmodel import col, select

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.contacts.models import Contact, ContactSearch

SEARCHED = ("phone_number", "name", "company", "email", "tags")
REACH, MAX_REACH = 20, 5_000
"""How many times as many of the newest contacts as are needed are noted, and how many at most."""
# Letters that look like an accented one, but that Unicode does not take apart.
LOOKALIKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"})


def words(text: str) -> list[str]:
    """A text's words in order, each once, without case and accents."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter)).translate(LOOKALIKES)
    return list(dict.fromkeys(plain.split()))


def compared(contact: Contact) -> dict[str, str]:
    """What is compared of a contact, by `ContactSearch`'s columns: its words, each once.

    Notes are apart, because long ones are kept away from their row and are read only where nothing else matches.
    """
    content = "\n".join(filter(None, (getattr(contact, name) for name in SEARCHED)))
    return {"content": " ".join(words(content)), "notes": " ".join(words(contact.notes or ""))}


async def find(
    session: TenantSession, wanted: list[str], *, phone_number: str | None, query: PageQuery
) -> tuple[list[Contact], int]:
    """A part of the contacts that hold all of the words, newest first, and how many there are in all.

    The pass that counts also notes which of the newest contacts matched. Where many match the part is among them, so that not all have to be
    sorted; where few match a second pass is cheap.
    """
    organization_id = session.organization_id
    ours, newest = (
        col(Contact.organization_id) == organization_id,
        (col(Contact.created_at).desc(), col(Contact.id).desc()),
    )
    matches = [col(ContactSearch.organization_id) == organization_id]
    patterns = [f"%{_literal(word)}%" for word in wanted]
    matches += [
        or_(col(ContactSearch.content).like(pattern), col(ContactSearch.notes).like(pattern)) for pattern in patterns
    ]
    if phone_number is not None:
        matches.append(
            col(ContactSearch.id).in_(select(Contact.id).where(ours, col(Contact.phone_number) == phone_number))
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


async def _show_only(session: TenantSession, text: str) -> None:
    """Have the table's policy hide what cannot match.

    Row-level security lets no condition of a query into an index of letters, because it might tell about rows that are not shown; a
    condition of the policy itself is let in.
    """
    await session.exec(select(func.set_config("app.contact_search", text, True)))


def _literal(word: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", word)
