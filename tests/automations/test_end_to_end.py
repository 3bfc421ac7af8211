"""Automations end to end: text messages and calls of the loopback carrier, a running worker, a receiver on a real
socket.
"""

import pytest
from switchboard.foundation.conditions import CHECKS
from switchboard.resources.automations.conditions import ROOTS
from switchboard.resources.automations.schemas import ActionRunOut, AutomationRunOut
from switchboard.resources.automations.templates import FILTERS, TESTS

from tests.fixtures.app import LivePlatform
from tests.fixtures.automations import CONTACT, create_automation, get_actions, get_automation, wait_for_finished_runs
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.servers import REPOSITORY
from tests.fixtures.webhooks import list_items

pytestmark = pytest.mark.local_receivers


async def test_a_message_with_a_keyword_tags_the_contact_and_calls_an_endpoint(
    live: LivePlatform, receiver: Receiver
) -> None:
    automation = await create_automation(
        live.caller,
        {"type": "tag_contact", "params": {"phone_number": "{{ data.from_number }}", "tag": "refund"}},
        {
            "type": "http_request",
            "params": {
                "url": f"{receiver.url}/crm",
                "headers": {"X-Number": "{{ data.from_number }}"},
                "body": {
                    "number": "{{ data.from_number }}",
                    "said": "{{ data.body | truncate(20) }}",
                    "event": "{{ event }}",
                },
            },
        },
        trigger_filters={"data.direction": "inbound"},
        conditions=[{"field": "data.body", "operator": "contains", "value": "refund"}],
    )
    await live.receive_text("I want a REFUND, and at once, please")
    (request,) = await receiver.first("/crm")
    assert request.json == {"number": CONTACT, "said": "I want a REFUND, an…", "event": "sms.received"}
    assert request.headers["X-Number"] == CONTACT
    (run,) = await wait_for_finished_runs(live.caller, automation)
    (contact,) = list_items(await live.caller.get("/v1/contacts"))
    assert (contact["phone_number"], contact["tags"]) == (CONTACT, "refund")
    assert (run["status"], run["trigger_event"], run["error_message"], run["depth"]) == (
        "completed",
        "sms.received",
        None,
        1,
    )
    tagged, called = get_actions(run)
    assert (tagged["status"], tagged["result"]) == ("completed", {"contact_id": contact["id"], "added": True})
    assert isinstance(called["result"], dict)
    assert (set(called["result"]), called["result"]["status_code"]) == ({"status_code", "duration_ms"}, 200)
    assert request.headers["Idempotency-Key"] == f"{run['id']}-1"
    counted = await get_automation(live.caller, automation)
    assert (counted["run_count"], counted["last_run_at"]) == (1, run["started_at"])


async def test_an_automation_that_triggers_itself_stops_at_depth_five(live: LivePlatform) -> None:
    action: Json = {
        "type": "send_sms",
        "params": {"from_number_id": live.number_id, "to_number": "{{ data.to_number }}", "body": "Again"},
    }
    automation = await create_automation(live.caller, action, trigger_type="sms.sent")
    response = await live.caller.post(
        "/v1/sms", {"from_number_id": live.number_id, "to_number": CONTACT, "body": "Once"}
    )
    assert response.status == 201
    runs = await wait_for_finished_runs(live.caller, automation, 6)
    assert [(run["depth"], run["status"]) for run in reversed(runs)] == [
        *((depth, "completed") for depth in range(1, 6)),
        (6, "skipped"),
    ]
    assert "loop guard" in str(runs[0]["error_message"])
    assert [action["status"] for action in get_actions(runs[0])] == ["skipped"]
    (conversation,) = list_items(await live.caller.get("/v1/sms/conversations"))
    messages = list_items(await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages"))
    assert [message["author"] for message in messages] == ["automation"] * 5 + ["api"]
    assert (await get_automation(live.caller, automation))["run_count"] == 6


def test_the_user_guide_names_every_trigger_and_action() -> None:
    page = (REPOSITORY / "docs" / "reference" / "automations.md").read_text()
    documented = [
        *FILTERS,
        *CHECKS,
        *(f"is {test}" for test in TESTS),
        *ROOTS,
        *AutomationRunOut.model_fields,
        *ActionRunOut.model_fields,
    ]
    own = {"id", "automation_id", "trigger_event", "started_at"}
    assert [name for name in documented if name not in own and f"`{name}`" not in page] == []
