"""Opening hours between the form, which has rows, and the API's schedule."""

from pydantic import JsonValue

from switchboard.apps.dashboard.forms.rows import list_filled_rows


def drop_blank_rows(schedule: JsonValue) -> JsonValue:
    """Return a submitted schedule without its empty rows."""
    if not isinstance(schedule, dict):
        return schedule
    kept = dict(schedule)
    kept["slots"] = list_slots(schedule)
    if isinstance(holidays := schedule.get("holidays"), list):
        kept["holidays"] = [holiday for holiday in holidays if holiday]
    return kept


def list_slots(schedule: JsonValue) -> list[JsonValue]:
    """Return the rows of opening hours that are not empty. A form sends no list if no day is chosen; here the list is
    empty.
    """
    slots = schedule.get("slots") if isinstance(schedule, dict) else None
    return [{"days": [], **slot} for _, slot in list_filled_rows(slots, "days", "start", "end")]
