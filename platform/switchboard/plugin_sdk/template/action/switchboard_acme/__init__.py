"""Acme: an automation action that writes a note. Replace the request with your vendor's."""

from collections.abc import Sequence
from contextlib import aclosing

from pydantic import Field
from switchboard.plugin_sdk import (
    ActionContext,
    ActionError,
    ActionParams,
    AutomationAction,
    JsonObject,
    ProviderError,
    hookimpl,
)

from switchboard_acme.client import AcmeClient, AcmeExtension

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


class NoteParams(ActionParams):
    """Parameters, which automations fill in with templates."""

    text: str = Field(max_length=500, description="The note.")


class WriteNote(AcmeExtension, AutomationAction[NoteParams]):
    """Write a note at Acme."""

    name = "acme_note"
    title = "Write a note at Acme"
    Params = NoteParams

    async def run(self, context: ActionContext, params: NoteParams) -> JsonObject:
        """Write the note once, however often the action runs: Acme knows the key of an earlier request."""
        try:
            async with aclosing(AcmeClient(self.settings)) as client:
                headers = {"Idempotency-Key": context.idempotency_key}
                note = await client.request("POST", "/notes", json={"text": params.text}, headers=headers)
        except ProviderError as error:
            raise ActionError(error.message, retryable=error.retryable) from error
        return {"note_id": note["id"]}


@hookimpl
def automation_actions() -> Sequence[type[WriteNote]]:
    return [WriteNote]
