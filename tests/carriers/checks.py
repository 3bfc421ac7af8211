"""Checks that are the same for each vendor, though the vendors' causes differ."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from sqlmodel import select, update
from switchboard.foundation.database import now
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.phone_numbers.jobs import repair_purchase
from switchboard.resources.phone_numbers.models import PhoneNumber

from tests.carriers.lines import wait_for_message_status
from tests.carriers.vendor import BROKEN, Vendor
from tests.fixtures.app import LivePlatform
from tests.fixtures.eventually import eventually
from tests.fixtures.work import do_due_work


async def fetch_carrier_recording(live: LivePlatform, call_id: UUID) -> bytes:
    """Return the carrier's recording as the API streams it, whole and in part."""

    async def read_call() -> Call:
        async with live.runtime.database.write(live.caller.organization_id) as session:
            return await get_row(session, Call, call_id)

    await eventually(read_call, lambda call: call.carrier_recording_id and call.has_recording)
    # The platform's own recording takes precedence.
    await live.runtime.call(RecordingArchive).delete_recording(live.caller.organization_id, call_id)
    whole = await live.caller.get(f"/v1/calls/{call_id}/recording")
    assert (whole.status, whole.headers["Content-Type"]) == (200, "audio/x-wav")
    part = await live.caller.send("GET", f"/v1/calls/{call_id}/recording", Range="bytes=4-11")
    assert (part.status, part.body) == (206, whole.body[4:12])
    assert part.headers["Content-Range"] == f"bytes 4-11/{len(whole.body)}"
    return whole.body


async def check_purchase_repair(live: LivePlatform, vendor: Vendor[Any], orders: str, phone_number: str) -> None:
    """Check that a number is bought once, though the response to its order (a POST to this last part of a path) was
    lost, or several workers find a purchase that was never ordered.
    """
    before, vendor.failures["POST", orders] = vendor.purchases, [BROKEN]
    response = await live.caller.post("/v1/phone-numbers", {"phone_number": phone_number})
    assert (response.status, response.json["code"]) == (502, "provider_error")
    async with live.runtime.database.write(live.caller.organization_id) as session:
        await session.exec(update(PhoneNumber).values(created_at=now() - timedelta(minutes=10)))
        carrier = (await session.exec(select(PhoneNumber.carrier).distinct())).one()
    await do_due_work(live.runtime, repair_purchase)
    numbers: Any = (await live.caller.get("/v1/phone-numbers")).json["items"]
    assert phone_number in [number["phone_number"] for number in numbers]
    assert vendor.purchases - before == 1
    begun = PhoneNumber(
        organization_id=live.caller.organization_id,
        phone_number=f"{phone_number[:-1]}{9 - int(phone_number[-1])}",
        friendly_name="x",
        carrier=carrier,
        created_at=now() - timedelta(minutes=10),
    )
    async with live.runtime.database.write(live.caller.organization_id) as session:
        session.add(begun)
    await asyncio.gather(*(do_due_work(live.runtime, repair_purchase) for _ in range(3)))
    async with live.runtime.database.write(live.caller.organization_id) as session:
        assert (await session.get_one(PhoneNumber, begun.id)).status == "active"
    assert vendor.purchases - before == 2


async def check_opt_out(live: LivePlatform, *, refusal_code: str) -> None:
    """Check that the carrier refuses text messages to a recipient who replied STOP, and then the platform does."""
    body = {"to_number": "+15550100083", "from_number_id": live.number_id, "body": "Hello"}
    first_response = await live.caller.post("/v1/sms", body)
    assert refusal_code in (await wait_for_message_status(live, first_response.json, "failed"))["error_message"]
    async with asyncio.timeout(60):
        response = await live.caller.post("/v1/sms", body)
        while response.json.get("code") != "recipient_opted_out":
            response = await live.caller.post("/v1/sms", body)


async def fetch_newest_files(live: LivePlatform) -> list[bytes]:
    """Return the files of the newest text message of the newest conversation, as our API serves them."""
    conversations: Any = (await live.caller.get("/v1/sms/conversations")).json["items"]
    messages: Any = (await live.caller.get(f"/v1/sms/conversations/{conversations[0]['id']}/messages")).json["items"]
    paths = [url.removeprefix(live.runtime.settings.base_url) for url in messages[0]["media_urls"]]
    files = [
        await eventually(partial(live.caller.get, path), lambda response: response.status != 503) for path in paths
    ]
    assert {file.status for file in files} == {200}
    return [file.body for file in files]
