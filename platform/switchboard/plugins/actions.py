"""Capability `automation_action`: what an automation can do when its trigger fires."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from switchboard.plugins.llm import JsonObject


class ActionParams(BaseModel):
    """An action's parameters, after their templates were filled in. The dashboard's form is made from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ActionError(Exception):
    """An action failed; `message` is kept with the run. `retryable` says that trying again may help."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Where an action runs. `idempotency_key` is the same at every retry of this action in this run."""

    organization_id: UUID
    automation_id: UUID
    run_id: UUID
    idempotency_key: str
    event: JsonObject


ParamsT = TypeVar("ParamsT", bound=ActionParams)


class AutomationAction(ABC, Generic[ParamsT]):
    """One kind of action. `name` is the `type` of an automation's action, `title` is for people, `Params` is its `params`."""

    name: ClassVar[str]
    title: ClassVar[str]
    Params: ClassVar[type[ActionParams]] = ActionParams

    @abstractmethod
    async def run(self, context: ActionContext, params: ParamsT) -> JsonObject:
        """Do it, and return what is kept with the run. Raises `ActionError`. May be called again after a crash with the same key."""
