"""Capability `automation_action`: what an automation can do when its trigger fires."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from switchboard.plugin_sdk.llm import JsonObject


class ActionParams(BaseModel):
    """An action's parameters, after their templates were filled in; texts are trimmed. The dashboard's form is made from it."""

    # A template that is one expression gives a number where there is one, also for a text.
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True, str_strip_whitespace=True)


class ActionError(Exception):
    """An action failed; `message` is kept with the run. `retryable` says that trying again may help."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable


class ActionPostponed(Exception):
    """An action is not over: it is to be run again at `until`, which counts as no failure and holds no worker up."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"until {until.isoformat()}")
        self.until = until


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Where an action runs. `idempotency_key` is the same at every retry of this action in this run, `began_at` is when the first of them began.

    `event` is what templates see: `event` (its name), `id`, `timestamp`, `organization_id` and `data`.
    """

    organization_id: UUID
    automation_id: UUID
    run_id: UUID
    idempotency_key: str
    event: JsonObject
    began_at: datetime


ParamsT = TypeVar("ParamsT", bound=ActionParams)


class AutomationAction(ABC, Generic[ParamsT]):
    """One kind of action. `name` is the `type` of an automation's action, `title` is for people, `Params` is its `params`.

    An instance is made without arguments, in a worker, each time that it runs.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    Params: ClassVar[type[ActionParams]] = ActionParams

    @abstractmethod
    async def run(self, context: ActionContext, params: ParamsT) -> JsonObject:
        """Do it within 30 seconds, and return what is kept with the run (at most 16 000 characters as JSON).

        Raises `ActionError`, and `ActionPostponed` to be called again later. May be called again after a crash, with the same key.
        """
