"""The form of a widget: the API's fields, with one origin in a line."""

from pydantic import JsonValue, field_validator

from switchboard.resources.widgets.schemas import WidgetUpdate


class WidgetForm(WidgetUpdate):
    """A widget's settings. The text area `allowed_origins[]` is the only item of its list."""

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _split_lines(cls, value: JsonValue) -> JsonValue:
        if not isinstance(value, list):
            return value
        return [line.strip() for item in value for line in str(item).splitlines() if line.strip()]
