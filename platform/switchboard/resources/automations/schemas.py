"""API schemas of automations."""

import json
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, JsonValue, field_validator

from switchboard.foundation.conditions import Comparison
from switchboard.foundation.events.catalog import EventName
from switchboard.foundation.web.schemas import Answer, CreatedAt, Moment, Name, PartialBody, RequestBody, show_example
from switchboard.resources.automations.conditions import validate_path
from switchboard.resources.automations.models import ActionStatus, AutomationRun

MAX_FILTERS = MAX_CONDITIONS = 50
MAX_ACTIONS = 20
MAX_PARAMS_CHARACTERS = 64_000
EXAMPLE: dict[str, JsonValue] = {
    "name": "Refunds",
    "trigger_type": "sms.received",
    "trigger_filters": {"data.direction": "inbound"},
    "conditions": [{"field": "data.body", "operator": "contains", "value": "refund"}],
    "actions": [{"type": "tag_contact", "params": {"phone_number": "{{ data.from_number }}", "tag": "refund"}}],
}


def _checked_filters(filters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {validate_path(path): value for path, value in filters.items()}


Filters = Annotated[
    dict[str, JsonValue],
    AfterValidator(_checked_filters),
    Field(
        max_length=MAX_FILTERS,
        description="Path and required value of fields; an event that does not match records no run.",
    ),
]


class Condition(Comparison):
    """A condition for the actions; if it does not hold, the run is `skipped`."""

    field: Annotated[str, Field(max_length=255, examples=["data.body"]), AfterValidator(validate_path)] = Field(
        description="Path into the event: `event`, `id`, `timestamp`, `organization_id`, or below `data.`"
    )


class Action(RequestBody):
    """An action and its parameters."""

    type: str = Field(max_length=64, description="A built-in action or one of a plugin.", examples=["send_sms"])
    params: dict[str, JsonValue] = Field(
        default_factory=dict, description="Parameters of the action; texts in them are templates over the event."
    )

    @field_validator("params")
    @classmethod
    def _not_too_long(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if len(json.dumps(value, ensure_ascii=False)) > MAX_PARAMS_CHARACTERS:
            raise ValueError(f"must have at most {MAX_PARAMS_CHARACTERS} characters")
        return value


Conditions = Annotated[list[Condition], Field(max_length=MAX_CONDITIONS, description="All conditions must hold.")]
Actions = Annotated[
    list[Action],
    Field(min_length=1, max_length=MAX_ACTIONS, description="Run in order; each waits for the one before."),
]


class AutomationFields(RequestBody):
    """Fields that create and update share."""

    description: str | None = Field(None, max_length=1000, description="Free text for people.")
    trigger_filters: Filters = Field(default_factory=dict)
    conditions: Conditions = Field(default_factory=list)
    enabled: bool = Field(True, description="False: events start no runs.")


class AutomationCreate(AutomationFields):
    """A new automation."""

    model_config = show_example(**EXAMPLE)

    name: Name
    trigger_type: EventName = Field(description="Name of the event that starts a run.")
    actions: Actions


class AutomationUpdate(AutomationFields, PartialBody):
    """A partial update of an automation. Runs that have started continue unchanged."""

    model_config = show_example(enabled=False)

    name: Name = ""
    trigger_type: EventName = Field("", description="Name of the event that starts a run.")
    actions: Actions = Field(default_factory=list)


class AutomationOut(Answer):
    """An automation."""

    id: UUID = Field(description="Id of the automation.")
    name: str
    description: str | None
    enabled: bool
    trigger_type: str
    trigger_filters: dict[str, JsonValue]
    conditions: list[Condition]
    actions: list[Action]
    run_count: int = Field(description="Runs recorded so far, including skipped ones.")
    last_run_at: Moment | None = Field(description="Time of the latest run; null before the first one.")
    created_at: CreatedAt


class ActionRunOut(Answer):
    """The result of one action of a run."""

    index: int = Field(description="Position among the automation's actions, from 0.")
    type: str = Field(description="Name of the action.")
    status: ActionStatus = Field(description="`skipped`: an earlier action failed, or the run was skipped.")
    attempts: int = Field(description="Number of attempts.")
    error: str | None = Field(description="Why it failed, or why its last attempt failed.")
    result: dict[str, JsonValue] | None = Field(
        description="Result of the action, for later actions; null until it completes."
    )
    started_at: Moment | None = Field(description="Time of the first attempt.")
    completed_at: Moment | None = Field(description="Time of the end; null while it runs or waits.")


class AutomationRunOut(Answer):
    """A run of an automation for one event."""

    id: UUID = Field(description="Id of the run.")
    automation_id: UUID = Field(description="Id of the automation.")
    trigger_event: str = Field(description="Name of the event that started the run.")
    status: Literal["running", "completed", "failed", "skipped"] = Field(
        description=(
            "`running`, then `completed` or `failed`; `skipped` if a condition did not hold or the loop guard "
            "stopped it."
        )
    )
    started_at: Moment = Field(description="Time at which the run was recorded.")
    completed_at: Moment | None = Field(description="Time of the end; null while it runs.")
    event_id: UUID = Field(description="Id of the event; an addition.")
    depth: int = Field(
        description="1, plus 1 for each automation that led to the event; above 5 the run is skipped; an addition."
    )
    error_message: str | None = Field(description="Why it failed or was skipped; an addition.")
    actions: list[ActionRunOut] = Field(description="Result of each action; an addition.")

    @classmethod
    def from_row(cls, run: AutomationRun) -> "AutomationRunOut":
        actions = [
            ActionRunOut.model_validate({**record.model_dump(), "index": index})
            for index, record in enumerate(run.records())
        ]
        return cls.model_validate(
            {**run.model_dump(exclude={"event"}), "started_at": run.created_at, "actions": actions}
        )
