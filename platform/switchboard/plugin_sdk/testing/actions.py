"""The contract of capability `automation_action`."""

import json
from datetime import UTC, datetime
from typing import Any, get_args
from uuid import uuid4

import pytest
from pydantic import ValidationError

from switchboard.plugin_sdk.actions import ActionContext, ActionParams, ActionScope, AutomationAction
from switchboard.plugin_sdk.testing.contract import ExtensionContract


class AutomationActionContract(ExtensionContract):
    """Rules of every automation action. Override `action` and `params`."""

    @pytest.fixture
    def action(self) -> AutomationAction[Any]:
        """The action under test, with its settings if it has any. Must be overridden."""
        raise NotImplementedError("override the fixture `action` of this contract")

    @pytest.fixture
    def extension(self, action: AutomationAction[Any]) -> AutomationAction[Any]:
        return action

    @pytest.fixture
    def params(self) -> ActionParams:
        """Parameters with which the action succeeds. Must be overridden."""
        raise NotImplementedError("override the fixture `params` of this contract")

    @pytest.fixture
    def context(self) -> ActionContext:
        """The run of the action."""
        return ActionContext(
            uuid4(), uuid4(), uuid4(), "key", {"event": "call.completed", "data": {}}, datetime.now(UTC)
        )

    async def test_its_scope_is_one_of_the_api(self, action: AutomationAction[Any]) -> None:
        """Nobody has an unknown scope, so nobody could use the action. If this fails, set `scope` to an `ActionScope`
        or to None.
        """
        assert action.scope is None or action.scope in get_args(ActionScope)

    async def test_its_parameters_refuse_unknown_keys(
        self, action: AutomationAction[Any], params: ActionParams
    ) -> None:
        """A typo in an automation must be reported. If this fails, make `Params` a subclass of `ActionParams`."""
        assert isinstance(params, action.Params)
        with pytest.raises(ValidationError):
            action.Params.model_validate({**params.model_dump(), "no_such_parameter": 1})

    async def test_its_parameters_make_a_form(self, action: AutomationAction[Any]) -> None:
        """The dashboard's form is generated from their JSON schema. If this fails, use types that pydantic can
        describe.
        """
        assert json.loads(json.dumps(action.Params.model_json_schema()))["type"] == "object"

    async def test_it_answers_a_json_object(
        self, action: AutomationAction[Any], params: ActionParams, context: ActionContext
    ) -> None:
        """The result is saved with the run. If this fails, return a dict of plain JSON values."""
        answer = await action.run(context, params)
        assert json.loads(json.dumps(answer)) == answer

    async def test_it_may_run_again(
        self, action: AutomationAction[Any], params: ActionParams, context: ActionContext
    ) -> None:
        """An action runs again after a crash.

        If this fails, use `idempotency_key` to act once and return the same result.
        """
        assert await action.run(context, params) == await action.run(context, params)
