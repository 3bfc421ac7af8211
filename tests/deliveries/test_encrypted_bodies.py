"""Bodies of deliveries under a key of their organization: receivers get them as ever, and the database has none."""

from uuid import UUID

import pytest
import pytest_asyncio
from switchboard.foundation.encryption.content import UNREADABLE
from switchboard.foundation.encryption.organization_keys import OrganizationKey
from switchboard.foundation.events.models import Delivery
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.command_line import Operator
from tests.fixtures.dashboard import People
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import create_endpoint, send_test, wait_for_delivery, wait_for_status

pytestmark = pytest.mark.local_receivers


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"webhook_retry_delays": [0.5] * 5, "webhook_timeout": 1.0})


@pytest_asyncio.fixture
async def caller(organizations: Organizations) -> Caller:
    return await organizations.create(policy=Policy(encryption=Encryption(texts=True)))


async def read_stored_body(runtime: Runtime, caller: Caller, delivery: Json) -> str:
    async with runtime.database.write(caller.organization_id) as session:
        row = await session.get_one(Delivery, UUID(str(delivery["id"])))
        return str(row.body.stored)


async def test_a_receiver_gets_the_signed_body_that_the_database_has_encrypted(
    runtime: Runtime, caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    sent = await send_test(caller, endpoint)
    (request,) = await receiver.first("/hook")
    assert request.signed_by(str(endpoint["secret"]))
    assert request.json == sent["payload"]
    assert (await wait_for_status(caller, sent, status="delivered"))["payload"] == request.json
    again = (await caller.post(f"/v1/webhook-deliveries/{sent['id']}/replay")).json
    _, replayed = await receiver.first("/hook", 2)
    assert replayed.body == request.body
    stored = [await read_stored_body(runtime, caller, delivery) for delivery in (sent, again)]
    assert all(body.startswith("sbt1.") for body in stored)
    assert stored[0] != stored[1]


async def test_a_pending_delivery_whose_key_was_destroyed_fails_and_is_not_replayed(
    caller: Caller, receiver: Receiver, running_worker: None, operator: Operator, people: People
) -> None:
    receiver.statuses["/hook"] = [500]
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    sent = await send_test(caller, endpoint)
    await receiver.first("/hook")
    operator.ask("keys", "shred", "--org", str(caller.organization_id), "--yes")
    failed = await wait_for_status(caller, sent, status="failed")
    assert failed["last_error"] == f"not sent: {UNREADABLE}"
    assert failed["payload"] == {"unreadable": UNREADABLE}
    assert (await caller.post(f"/v1/webhook-deliveries/{sent['id']}/replay")).status == 409
    period = {"since": "2020-01-01T00:00:00Z"}
    replayed = await caller.post(f"/v1/webhook-endpoints/{endpoint['id']}/replay-failed", period)
    assert replayed.json == {"replayed": 0, "has_more": False}
    member = await people.join(caller.organization_id)
    assert UNREADABLE in (await member.get(f"/dashboard/webhooks/deliveries/{sent['id']}")).html


async def test_a_body_under_a_key_that_the_process_lacks_waits_and_delays_nobody(
    runtime: Runtime, caller: Caller, organizations: Organizations, receiver: Receiver, running_worker: None
) -> None:
    receiver.statuses.update({"/lost": [500], "/other": [500]})
    waiting = await send_test(caller, await create_endpoint(caller, f"{receiver.url}/lost"))
    tried = await wait_for_delivery(caller, waiting, lambda found: bool(found["attempts"]))
    async with runtime.database.write(caller.organization_id) as session:
        key = (await session.exec(session.select(OrganizationKey))).one()
        label = f"organization_key|wrapped|{key.id}|{caller.organization_id}"
        wrapped, key.wrapped = key.wrapped, KeyRing(["a lost key"]).encrypt("00" * 32, label)
    other = await organizations.create(policy=Policy(encryption=Encryption(texts=True)))
    sent = await send_test(other, await create_endpoint(other, f"{receiver.url}/other"))
    await wait_for_delivery(other, sent, lambda found: found["attempts"] == 3)
    async with runtime.database.write(caller.organization_id) as session:
        key = await session.get_one(OrganizationKey, key.id)
        key.wrapped = wrapped
        stored = await session.get_one(Delivery, UUID(str(waiting["id"])))
        assert (stored.status, stored.last_error) == ("pending", tried["last_error"])
