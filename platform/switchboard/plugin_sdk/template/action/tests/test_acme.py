"""The contract of an action, and tests of this plugin's own."""

import pytest
from acme_vendor import Acme
from switchboard.plugin_sdk import ActionContext, ActionError
from switchboard.plugin_sdk.testing import AutomationActionContract
from switchboard_acme import NoteParams, WriteNote
from switchboard_acme.client import AcmeSettings


class TestWriteNote(AutomationActionContract):
    @pytest.fixture
    def action(self, settings: AcmeSettings) -> WriteNote:
        action = WriteNote()
        action.settings = settings
        return action

    @pytest.fixture
    def params(self) -> NoteParams:
        return NoteParams(text="Call back on Monday.")

    async def test_a_vendor_out_of_order_is_asked_again_later(
        self, action: WriteNote, params: NoteParams, context: ActionContext, acme: Acme
    ) -> None:
        acme.fault = 503
        with pytest.raises(ActionError, match="out of order") as failed:
            await action.run(context, params)
        assert failed.value.retryable
