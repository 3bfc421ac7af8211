"""The built-in actions, one module each."""

from collections.abc import Sequence
from typing import Any

from switchboard.plugin_sdk import AutomationAction, hookimpl
from switchboard.resources.automations.actions.add_to_campaign import AddToCampaign
from switchboard.resources.automations.actions.http_request import HttpRequest
from switchboard.resources.automations.actions.send_sms import SendSms
from switchboard.resources.automations.actions.start_call import StartCall
from switchboard.resources.automations.actions.tag_contact import TagContact
from switchboard.resources.automations.actions.upsert_contact import UpsertContact
from switchboard.resources.automations.actions.wait import Wait


@hookimpl
def automation_actions() -> Sequence[type[AutomationAction[Any]]]:
    """Return the built-in actions (docs/decisions/0009-automation-conditions-and-templates.md)."""
    return [SendSms, StartCall, HttpRequest, UpsertContact, TagContact, AddToCampaign, Wait]
