"""Files of text messages: those that contacts send are fetched from the carrier and served by us; of those that we send
the carrier gets the addresses.
"""

from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from zipfile import ZipFile

import pytest
from sqlmodel import col, update
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import now
from switchboard.foundation.web.signed_links import LINK_LIFETIME
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.privacy.export import PersonExporter
from switchboard.resources.sms.media import MAX_MEDIA_BYTES
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.retention import MessageDeleter
from switchboard_offline.loopback import texts

from tests.fixtures.app import ApiResponse, Caller, Client, LivePlatform, Organizations
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, objects_at, texts_at
from tests.fixtures.virtual_clock import CLOCK

CONTACT = "+15550100001"
PICTURE = "https://example.com/bread.jpg"
UNSUITABLE = {
    "loopback:page.html": ("text/html", b"<script>alert(1)</script>"),
    "loopback:drawing.svg": ("image/svg+xml", b"<svg/>"),
    "loopback:film.mp4": ("video/mp4", b"0" * (MAX_MEDIA_BYTES + 1)),
}


@pytest.fixture
def unsuitable_files() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for url, file in UNSUITABLE.items():
            patch.setitem(texts.FILES, url, file)
        yield


async def receive_files(live: LivePlatform, *urls: str, body: str = "") -> Json:
    """Let a contact send files; return the message."""
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        callbacks = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback")
        await carrier.simulate_text_message(
            from_number=CONTACT, to_number=live.number, body=body, callbacks=callbacks, media_urls=urls
        )
    (conversation,) = objects_at((await live.caller.get("/v1/sms/conversations")).json, "items")
    response = await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")
    return next(message for message in objects_at(response.json, "items") if message["media_urls"])


async def get_file(live: LivePlatform, url: object, caller: Caller | None = None) -> ApiResponse:
    """Return the file at an address of ours, once it is there."""
    path = str(url).removeprefix(live.runtime.settings.base_url)
    return await eventually(lambda: (caller or live.caller).get(path), lambda response: response.status != 503)


async def test_a_contacts_file_is_fetched_and_served_by_us(live: LivePlatform) -> None:
    message = await receive_files(live, texts.PICTURE)
    (url,) = texts_at(message, "media_urls")
    assert str(url).startswith(f"{live.runtime.settings.base_url}/v1/sms/media/")
    file = await get_file(live, url)
    content_type, content = texts.FILES[texts.PICTURE]
    assert (file.status, file.headers["content-type"], file.body) == (200, content_type, content)
    assert file.headers["content-disposition"].startswith("attachment")
    assert file.headers["x-content-type-options"] == "nosniff"


async def test_reading_a_file_is_an_entry_of_the_audit_log(live: LivePlatform) -> None:
    (url,) = texts_at(await receive_files(live, texts.PICTURE), "media_urls")
    assert (await get_file(live, url)).status == 200
    async with live.runtime.database.write(live.caller.organization_id) as session:
        rows = session.select(AuditEntry).where(col(AuditEntry.action) == "sms_media.read")
        entries = (await session.exec(rows)).all()
    assert [(entry.actor, entry.subject) for entry in entries] == [
        (f"key:{live.caller.key_id}", str(url).rpartition("/")[2])
    ]


async def test_a_link_to_a_file_needs_no_credential_until_it_expires(live: LivePlatform, client: Client) -> None:
    (url,) = texts_at(await receive_files(live, texts.PICTURE), "media_urls")
    link = (await get_file(live, f"{url}/url")).json
    content_type, content = texts.FILES[texts.PICTURE]
    assert link["content_type"] == content_type
    path = str(link["url"]).removeprefix(live.runtime.settings.base_url)
    followed = await client.get(path)
    assert (followed.status_code, await followed.get_data(as_text=False)) == (200, content)
    assert followed.headers["Content-Disposition"].startswith("attachment")
    assert (await client.get(f"{path[:-4]}0000")).status_code == 404
    recording = path.replace("/sms-media/", "/recordings/")
    assert (await client.get(recording)).status_code == 404, "a token of one purpose is none of another"
    CLOCK.advance(LINK_LIFETIME.total_seconds())
    assert (await client.get(path)).status_code == 404


@pytest.mark.usefixtures("unsuitable_files")
async def test_files_that_are_too_large_or_could_be_pages_are_refused(live: LivePlatform) -> None:
    message = await receive_files(live, *UNSUITABLE, "loopback:gone.png")
    reasons = [(await get_file(live, url)).json for url in texts_at(message, "media_urls")]
    assert [(reason["status"], str(reason["detail"]).partition(": ")[2]) for reason in reasons] == [
        (404, "files of type text/html are not stored."),
        (404, "files of type image/svg+xml are not stored."),
        (404, f"it is larger than {MAX_MEDIA_BYTES} bytes."),
        (404, "the carrier has no file loopback:gone.png."),
    ]


async def test_another_organization_does_not_get_the_file(live: LivePlatform, organizations: Organizations) -> None:
    message = await receive_files(live, texts.PICTURE)
    stranger = await organizations.create()
    assert (await get_file(live, texts_at(message, "media_urls")[0], stranger)).status == 404


async def test_a_deleted_message_leaves_no_file(live: LivePlatform) -> None:
    message = await receive_files(live, texts.PICTURE)
    (url,) = texts_at(message, "media_urls")
    assert (await get_file(live, url)).status == 200
    organization_id, archive = live.caller.organization_id, live.runtime.call(RecordingArchive)
    assert len(await archive.recordings.list_keys(f"{organization_id}/media")) == 1
    async with live.runtime.database.write(organization_id) as session:
        await session.exec(update(SmsMessage).values(created_at=now() - timedelta(days=1)))
        await session.exec(update(SmsConversation).values(reply_due_at=None))
    await MessageDeleter(live.runtime.database, recordings=archive.recordings).delete_batch(organization_id, now())
    assert await archive.recordings.list_keys(f"{organization_id}/media") == []
    assert (await get_file(live, url)).status == 404


async def test_an_export_has_the_files_of_the_person(live: LivePlatform) -> None:
    message = await receive_files(live, texts.PICTURE)
    (url,) = texts_at(message, "media_urls")
    assert (await get_file(live, url)).status == 200
    file = BytesIO()
    exporter = live.runtime.call(PersonExporter)
    counted = await exporter.export(live.caller.organization_id, CONTACT, file, actor="operator")
    assert counted["sms_media"] == 1
    with ZipFile(file) as archive:
        (name,) = (name for name in archive.namelist() if name.startswith("media/"))
        assert archive.read(name) == texts.FILES[texts.PICTURE][1]


async def test_a_message_is_sent_with_files(live: LivePlatform) -> None:
    fields = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Fresh.", "media_urls": [PICTURE]}
    accepted = await live.caller.post("/v1/sms", fields)
    assert (accepted.status, accepted.json["media_urls"]) == (201, [PICTURE])


@pytest.mark.public_only
@pytest.mark.parametrize(
    "urls", [["http://127.0.0.1/a.jpg"], ["file:///etc/passwd"], ["a.jpg"], [PICTURE] * 11], ids=str
)
async def test_files_that_the_carrier_cannot_fetch_are_refused(live: LivePlatform, urls: list[str]) -> None:
    fields = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Fresh.", "media_urls": urls}
    refused = await live.caller.post("/v1/sms", fields)
    assert refused.status == 422
    assert "media_urls" in str(refused.json["errors"])
