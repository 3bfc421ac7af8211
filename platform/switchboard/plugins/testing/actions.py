"""The contract of capability `automation_action`."""

import json
from typing import Any
from uuid import uuid4

import pytest

from switchboard.plugins.actions import ActionContext, ActionParams, AutomationAction


class AutomationActionContract:
    """Rules of every kind of action. Override `action` and `params`."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def action(self) -> AutomationAction[Any]:
        """The action. Must be overridden."""
        raise NotImplementedError("override the fixture `action` of this contract")

    @pytest.fixture
    def params(self) -> ActionParams:
        """Parameters with which it succeeds. Must be overridden."""
        raise NotImplementedError("override the fixture `params` of this contract")

    @pytest.fixture
    def context(self) -> ActionContext:
        """Where it runs."""
        return ActionContext(uuid4(), uuid4(), uuid4(), "key", {"event": "call.completed", "data": {}})

    async def test_it_has_a_name_a_title_and_strict_parameters(self, action: AutomationAction[Any]) -> None:
        """If this fails, set the class attributes, and let `Params` subclass `ActionParams`."""
        assert action.name
        assert action.title
        assert issubclass(action.Params, ActionParams)

    async def test_it_answers_json_and_may_run_again(self, action: AutomationAction[Any], params: ActionParams, context: ActionContext) -> None:
        """A crash may come after it ran. If this fails, use `idempotency_key` to do it once, and answer plain JSON."""
        for _ in range(2):
            json.dumps(await action.run(context, params))
