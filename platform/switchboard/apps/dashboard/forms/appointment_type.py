"""Convert an appointment type between the form, which has rows and check boxes, and the API's body.

A special day is one row for each of its hours, and a row without hours if it is closed. A question has a check box
instead of its name in `check_fields`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from pydantic import JsonValue

from switchboard.apps.dashboard.forms.form import Form, parse_form
from switchboard.apps.dashboard.forms.rows import drop_blank_rows, list_filled_rows, list_rows, rename_error_fields
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings

Fields = TypeVar("Fields", bound=AppointmentTypeSettings)
LABELS: Final = {
    "name": LazyText("Name"),
    "calendar_ids": LazyText("Calendars"),
    "calendar_mode": LazyText("Booked in"),
    "duration_minutes": LazyText("Duration (minutes)"),
    "grid_minutes": LazyText("Start times every (minutes)"),
    "buffer_before_minutes": LazyText("Buffer before (minutes)"),
    "buffer_after_minutes": LazyText("Buffer after (minutes)"),
    "hours": LazyText("Hours"),
    "hours.timezone": LazyText("Time zone"),
    "hours.holidays": LazyText("Closed on"),
    "hours.special_days": LazyText("Days with other hours"),
    "lead_minutes": LazyText("Lead time (minutes)"),
    "horizon_days": LazyText("Book ahead (days)"),
    "daily_limit": LazyText("Most appointments a day"),
    "reminder_minutes": LazyText("Reminders"),
    "fields": LazyText("Questions"),
    "check_fields": LazyText("Answers that are asked for as a check"),
}
"""Labels of the form's fields outside of rows."""
WHOLE: Final = {
    "body": "fields",  # their names must differ
    "calendar_ids.*": "calendar_ids",
    "hours.holidays.*": "hours.holidays",
    "reminder_minutes.*": "reminder_minutes",
}
"""Fields of the form that show the errors of each of their values."""


def type_to_form(name: str, settings: AppointmentTypeSettings) -> JsonObject:
    """Return the form's values of an appointment type. The last of several special days of one date counts."""
    values: JsonObject = settings.model_dump(mode="json")
    days = {day.date: day for day in settings.hours.special_days}
    rows: list[JsonValue] = [
        {"date": day.date, "start": hours.start if hours else "", "end": hours.end if hours else ""}
        for day in days.values()
        for hours in day.hours or (None,)
    ]
    questions: list[JsonValue] = [
        {**question.model_dump(), "check": question.name in settings.check_fields} for question in settings.fields
    ]
    return {
        **values,
        "name": name,
        "hours": {**settings.hours.model_dump(mode="json"), "special_days": rows},
        "fields": questions,
        "reminder_minutes": ", ".join(map(str, settings.reminder_minutes)),
    }


@contextmanager
def read_type_form(model: type[Fields], values: JsonObject) -> Iterator[Fields]:
    """Read a new appointment type, or an update. Empty rows are dropped from `values`, so that a refused form shows
    errors at the rows that it keeps. An empty number has its default.

    Raises `ValidationFailed` with the form's field names, and renames errors raised within.
    """
    _drop_empty_rows(values)
    fields = {name: value for name, value in values.items() if name in model.model_fields}
    for name, field in AppointmentTypeSettings.model_fields.items():
        if isinstance(field.default, int) and not str(fields.get(name, "-")).strip():
            fields[name] = field.default
    places = dict(WHOLE)
    fields["hours"] = _read_hours(values["hours"], places)
    fields["fields"], fields["check_fields"] = _read_questions(list_rows(values["fields"]), places)
    fields["reminder_minutes"] = [*filter(None, re.split(r"[,;\s]+", str(values.get("reminder_minutes") or "")))]
    with rename_error_fields(places):
        yield parse_form(model, fields)


def _drop_empty_rows(values: JsonObject) -> None:
    hours = drop_blank_rows(values.get("hours"))
    days = hours.get("special_days") if isinstance(hours, dict) else None
    values["hours"] = {
        **(hours if isinstance(hours, dict) else {}),
        "special_days": [row for _place, row in list_filled_rows(days, "date", "start", "end")],
    }
    values["fields"] = [row for _place, row in list_filled_rows(values.get("fields"), "name", "description")]
    values.setdefault("calendar_ids", [])


def _read_hours(hours: JsonValue, places: dict[str, str]) -> JsonValue:
    """Return the hours of the API's body, with the rows of each date in one special day."""
    given = hours if isinstance(hours, dict) else {}
    days: list[tuple[JsonObject, list[JsonValue]]] = []
    by_date: dict[str, int] = {}
    for number, row in enumerate(list_rows(given.get("special_days"))):
        date = str(row.get("date") or "").strip()
        index = by_date.setdefault(date, len(days)) if date else len(days)
        if index == len(days):
            days.append(({"date": date} if date else {}, []))
            places[f"hours.special_days.{index}"] = f"hours.special_days.{number}"
            places[f"hours.special_days.{index}.hours"] = f"hours.special_days.{number}.date"
        start, end = (str(row.get(name) or "").strip() for name in ("start", "end"))
        if start or end:
            times = days[index][1]
            places[f"hours.special_days.{index}.hours.{len(times)}"] = f"hours.special_days.{number}"
            times.append({"start": start, "end": end})
    return {**given, "special_days": [{**day, "hours": times} for day, times in days]}


def _read_questions(rows: list[JsonObject], places: dict[str, str]) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return the questions, and the names of those whose answers are a check."""
    questions: list[JsonValue] = []
    checked: list[JsonValue] = []
    for number, row in enumerate(rows):
        name = str(row.get("name") or "").strip()
        kept: JsonObject = {key: value for key, value in row.items() if key not in ("name", "check")}
        questions.append({**kept, "name": name} if name else kept)
        if name and row.get("check") == "true":
            places[f"check_fields.{len(checked)}"] = f"fields.{number}.check"
            checked.append(name)
    return questions, checked


def show_labels(form: Form) -> Form:
    """Name the fields of the form; those within a row have the row's number."""
    labels: dict[str, str] = {name: _(label) for name, label in LABELS.items()}
    rows: Mapping[str, tuple[str, dict[str, str]]] = {
        "fields": (
            _("Question"),
            {"name": _("Name"), "description": _("Question"), "check": _("Check of callers from another number")},
        ),
        "hours.slots": (_("Hours"), {"days": _("days"), "start": _("from"), "end": _("to")}),
        "hours.special_days": (_("Special day"), {"date": _("Date"), "start": _("from"), "end": _("to")}),
    }
    for name, (title, parts) in rows.items():
        for number in range(len(list_rows(form.value(name)))):
            labels |= {f"{name}.{number}.{part}": f"{title} {number + 1}, {label}" for part, label in parts.items()}
    return form.with_labels(labels)
