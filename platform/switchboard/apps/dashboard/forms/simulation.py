"""Convert a simulation between the form, with one line per turn and one row per assertion, and the API's body."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pydantic import JsonValue

from switchboard.apps.dashboard.forms.rows import (
    list_filled_rows,
    parse_with_errors,
    rename_error_fields,
    split_lines,
)
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import FieldError
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.models import Simulation
from switchboard.resources.simulations.schemas import ASSERTED_FIELDS, SimulationCreate

FRESH: JsonObject = {"mode": "text", "max_turns": 20, "assertions": [{"type": "said"}]}


def simulation_to_form(simulation: Simulation) -> JsonObject:
    """Return the form's values of an existing simulation."""
    return {
        **simulation.model_dump(include={"name", "mode", "persona", "goal", "max_turns"}),
        "lines": "\n".join(simulation.lines),
        "assertions": [
            {
                "type": assertion["type"],
                "value": assertion[ASSERTED_FIELDS[str(assertion["type"])]],
                "name": assertion.get("name"),
                "arguments": json.dumps(arguments) if (arguments := assertion.get("arguments")) else "",
            }
            for assertion in simulation.assertions
        ],
    }


@contextmanager
def read_simulation_form(values: Mapping[str, JsonValue]) -> Iterator[SimulationCreate]:
    """Read a simulation from the form. Raises `ValidationFailed` with the form's field names, and renames errors raised
    within.
    """
    assertions: list[JsonValue] = []
    faults: list[FieldError] = []
    places = {"lines.*": "lines"}
    for number, row in list_filled_rows(values.get("assertions"), "value", "name", "arguments"):
        kind = str(row.get("type"))
        places[f"assertions.{len(assertions)}"] = f"assertions.{number}"
        for field, own in ((ASSERTED_FIELDS.get(kind, ""), "value"), ("name", "name"), ("arguments", "arguments")):
            places[f"assertions.{len(assertions)}.{kind}.{field}"] = f"assertions.{number}.{own}"
        assertions.append(_assertion(kind, row, number, faults))
    given: JsonObject = {**values, "lines": split_lines(values.get("lines")), "assertions": assertions}
    data = parse_with_errors(SimulationCreate, given, places, faults)
    with rename_error_fields(places):
        yield data


def _assertion(kind: str, row: JsonObject, number: int, faults: list[FieldError]) -> JsonValue:
    made: JsonObject = {"type": kind, ASSERTED_FIELDS.get(kind, "value"): row.get("value")}
    if str(row.get("name") or "").strip():
        made["name"] = row["name"]
    if kind == "tool_called" and str(row.get("arguments") or "").strip():
        try:
            made["arguments"] = json.loads(str(row["arguments"]))
        except (ValueError, RecursionError):
            message = _('Write a JSON object, such as {"number": "17"}.')
            faults.append(FieldError(field=f"assertions.{number}.arguments", message=message))
    return made
