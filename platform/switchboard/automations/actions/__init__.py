"""The built-in actions, one file each."""

from collections.abc import Sequence
from typing import Any

from switchboard.automations.actions.add_to_campaign import AddToCampaign
from switchboard.automations.actions.http_request import HttpRequest
from switchboard.automations.actions.send_sms import SendSms
from switchboard.automations.actions.start_call import StartCall
from switchboard.automations.actions.tag_contact import TagContact
from switchboard.automations.actions.upsert_contact import UpsertContact
from switchboard.automations.actions.wait import Wait
from switchboard.plugins import AutomationAction, hookimpl


@hookimpl
def automation_actions() -> Sequence[type[AutomationAction[Any]]]:
    """Those of api-decisions, "Objects"."""
    return [SendSms, StartCall, HttpRequest, UpsertContact, TagContact, AddToCampaign, Wait]
