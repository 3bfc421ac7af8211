"""Checks that are the same for each vendor, though the vendors' causes differ."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlmodel import update
from switchboard.foundation.database import now
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.media.call_runner import build_recording_path
from switchboard.resources.phone_numbers.jobs import repair_purchases
from switchboard.resources.phone_numbers.models import PhoneNumber

from tests.carriers.lines import text_with
from tests.carriers.vendor import BROKEN, Vendor
from tests.fixtures.app import LivePlatform


async def carriers_recording(live: LivePlatform, call_id: UUID) -> bytes:
    """Return the carrier's recording as the API streams it, whole and in part."""
    async with asyncio.timeout(20), live.runtime.database.tenant(live.caller.organization_id) as session:
        call = await calls.get_call(session, call_id)
        while call.carrier_recording_id is None:
            await asyncio.sleep(0.05)
            await session.refresh(call)
    build_recording_path(live.runtime.settings, call).unlink()  # the platform's own recording takes precedence
    whole = await live.caller.get(f"/v1/calls/{call_id}/recording")
    assert (whole.status, whole.headers["Content-Type"]) == (200, "audio/x-wav")
    part = await live.caller.send("GET", f"/v1/calls/{call_id}/recording", Range="bytes=4-11")
    assert (part.status, part.body) == (206, whole.body[4:12])
    assert part.headers["Content-Range"] == f"bytes 4-11/{len(whole.body)}"
    return whole.body


async def purchase_is_repaired(live: LivePlatform, vendor: Vendor[Any], orders: str, phone_number: str) -> None:
    """Check that a number is bought once, though the response to its order (a POST to this last part of a path) was
    lost.
    """
    before, vendor.failures["POST", orders] = vendor.purchases, [BROKEN]
    answer = await live.caller.post("/v1/phone-numbers", {"phone_number": phone_number})
    assert (answer.status, answer.json["code"]) == (502, "provider_error")
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        await session.exec(update(PhoneNumber).values(created_at=now() - timedelta(minutes=10)))
    await repair_purchases(live.runtime)
    numbers: Any = (await live.caller.get("/v1/phone-numbers")).json["items"]
    assert phone_number in [number["phone_number"] for number in numbers]
    assert vendor.purchases - before == 1


async def is_opted_out(live: LivePlatform, *, refused_with: str) -> None:
    """Check that the carrier refuses text messages to a recipient who replied STOP, and then the platform does."""
    body = {"to_number": "+15550100083", "from_number_id": live.number_id, "body": "Hello"}
    sent = await live.caller.post("/v1/sms", body)
    assert refused_with in (await text_with(live, sent.json, "failed"))["error_message"]
    async with asyncio.timeout(20):
        answer = await live.caller.post("/v1/sms", body)
        while answer.json.get("code") != "recipient_opted_out":
            answer = await live.caller.post("/v1/sms", body)


async def newest_pictures(live: LivePlatform) -> list[str]:
    """Return the links in the newest text message of the newest conversation."""
    conversations: Any = (await live.caller.get("/v1/sms/conversations")).json["items"]
    messages: Any = (await live.caller.get(f"/v1/sms/conversations/{conversations[0]['id']}/messages")).json["items"]
    return list(messages[0]["media_urls"])
