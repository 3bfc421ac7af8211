"""The form of a list of contacts: pasted lines or a CSV file, previewed before it is saved."""

import asyncio

from babel.numbers import format_decimal
from pydantic import JsonValue

from switchboard.apps.dashboard.forms.form import Files
from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import get_display_locale, ngettext
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import FieldError, ValidationFailed
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.campaigns.csv_import import ColumnLayout, ContactList, get_region, parse_contact_list
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import list_active_numbers

ENCODINGS = ("utf-8-sig", "cp1252")


async def parse_list(values: JsonObject, number: PhoneNumber | None) -> ContactList:
    """Parse the list, with numbers without a country code read like an own number, in a thread: 100,000 lines take
    seconds, which would delay live calls.
    """
    region, layout = get_region(number.phone_number) if number else None, _read_layout(values.get("columns"))
    return await asyncio.to_thread(parse_contact_list, str(values.get("people") or ""), region=region, layout=layout)


async def parse_list_of_organization(session: ReadSession, values: JsonObject) -> ContactList:
    """Parse the list. Numbers without a country code are read like the organization's first number."""
    return await parse_list(values, next(iter(await list_active_numbers(session)), None))


def read_list_file(values: JsonObject, files: Files) -> list[FieldError]:
    """Replace the form's lines by the text of an uploaded file. Return the file's errors."""
    file = files.get("file")
    if file is None or not file.filename:
        return []
    text = _decode(file.read())
    if text is None:
        message = _("%(filename)s is not a text file: save the spreadsheet as CSV", filename=file.filename)
        return [{"field": "file", "message": message}]
    values["people"] = text
    values.pop("columns", None)
    return []


def _decode(content: bytes) -> str | None:
    """Decode a file in the encodings of spreadsheets; None if it is not text."""
    for encoding in ("utf-16", *ENCODINGS) if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ENCODINGS:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")
    return None


def _read_layout(chosen: JsonValue) -> ColumnLayout | None:
    """Return the columns that the user chose in the preview."""
    if not isinstance(chosen, dict) or not str(chosen.get("phone", "")).isdigit():
        return None
    name = str(chosen.get("name", ""))
    return ColumnLayout(
        int(str(chosen["phone"])), int(name) if name.isdigit() else None, chosen.get("header") == "true"
    )


def require_usable(people: ContactList, values: JsonObject, faults: list[FieldError]) -> ContactList:
    """Raise `ValidationFailed` for an empty list, and for invalid lines that the user did not choose to skip."""
    if faults:
        raise ValidationFailed(faults[0]["message"], errors=faults)
    if people.faults and values.get("leave_out") != "true":
        notice = ngettext(
            "%(number)s line cannot be used. Correct the list, or skip the invalid lines.",
            "%(number)s lines cannot be used. Correct the list, or skip the invalid lines.",
            len(people.faults),
            number=format_decimal(len(people.faults), locale=get_display_locale()),
        )
        raise ValidationFailed(notice, errors=[{"field": "people", "message": notice}])
    if not people.people:
        raise ValidationFailed.field("people", _("is empty"))
    return people
