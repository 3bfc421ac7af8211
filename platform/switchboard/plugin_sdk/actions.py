"""Capability `automation_action`: actions that an automation runs when its trigger fires."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from switchboard.plugin_sdk.llm import JsonObject
from switchboard.plugin_sdk.provider import Extension


class ActionParams(BaseModel):
    """Parameters of an action, after template substitution; strings are trimmed. The dashboard's form is generated from
    it.
    """

    # A template that consists of one expression keeps the expression's type, so a string parameter may receive a
    # number.
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True, str_strip_whitespace=True)


class ActionError(Exception):
    """An action failed. `message` is saved with the run. `retryable`: a later attempt may succeed."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable


class ActionPostponed(Exception):
    """The action is not finished and runs again at `until`. That is not a failure, and no worker waits for it."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"until {until.isoformat()}")
        self.until = until


@dataclass(frozen=True, slots=True)
class ActionContext:
    """The run of an action.

    `idempotency_key` is the same for every attempt of this action in this run; `began_at` is the start of the first
    attempt. `event` is the object that templates see: `event` (its name), `id`, `timestamp`, `organization_id`, and
    `data`.
    """

    organization_id: UUID
    automation_id: UUID
    run_id: UUID
    idempotency_key: str
    event: JsonObject
    began_at: datetime


ActionScope: TypeAlias = Literal[
    "agents:write",
    "calls:write",
    "phone-numbers:write",
    "sms:write",
    "contacts:write",
    "campaigns:write",
    "calendar:write",
    "privacy:write",
    "webhooks:write",
]
"""A scope of the API that lets its holder change something."""

ParamsT = TypeVar("ParamsT", bound=ActionParams)


class AutomationAction(Extension, ABC, Generic[ParamsT]):
    """One kind of action.

    `name` is the `type` of an automation's action, `title` its display name, and `Params` the model of its `params`. A
    worker creates an instance, without arguments, for each run. Templates never see its settings.

    `scope` is what a key, an application, or a member needs to write an automation with this action: the scope of the
    endpoint that does the same. The default is one that only owners have, because the action may send data anywhere.
    None: the scope to write automations, `campaigns:write`, is enough.
    """

    scope: ClassVar[ActionScope | None] = "webhooks:write"
    Params: ClassVar[type[ActionParams]] = ActionParams

    @abstractmethod
    async def run(self, context: ActionContext, params: ParamsT) -> JsonObject:
        """Run the action within 30 seconds and return its result, saved with the run (at most 16,000 characters of
        JSON).

        Raises `ActionError`, or `ActionPostponed` to be called again later. May be called again after a crash, with the
        same `idempotency_key`.
        """
