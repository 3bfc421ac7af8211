"""Free-text search: every word of the query occurs in the contact, ignoring case and accents."""

import unicodedata

from switchboard.foundation.database import ReadSession
from switchboard.resources.contacts import queries
from switchboard.resources.contacts.models import Contact
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
    words, needed = split_words(query.search), query.offset + query.limit
    await queries.show_only_matches(session, words)
    total, ids = await queries.count_matches(session, words, query.phone, reach=min(needed * REACH, MAX_REACH))
    offset = query.offset
    if len(ids) < min(needed, total):
        ids = await queries.list_matching_ids(session, words, query.phone, offset=offset, limit=query.limit)
        offset = 0
    await queries.show_only_matches(session, ())
    return await queries.list_newest_contacts(session, ids, offset=offset, limit=query.limit), total
