"""Files of text messages and recordings come from public addresses only, whoever signs the callback that names them.

The vendors of these tests are on 127.0.0.1, which the operator allows; another loopback address stands for the network
inside.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from switchboard.plugin_sdk.testing.vendors import PrivateServer, serve_private
from switchboard.runtime import Runtime

from tests.carriers.lines import PERSON, open_plivo_line, open_telnyx_line, open_twilio_line
from tests.carriers.twilio.server import new_sid
from tests.fixtures.app import LivePlatform, Organizations
from tests.fixtures.eventually import eventually

pytestmark = pytest.mark.local_receivers
SendFiles = Callable[[Sequence[str]], Awaitable[object]]


@pytest_asyncio.fixture
async def inside() -> AsyncIterator[PrivateServer]:
    async with serve_private() as server:
        yield server


async def check_nothing_is_fetched(live: LivePlatform, inside: PrivateServer, send: SendFiles, urls: list[str]) -> None:
    """Send a text message whose files are at these addresses, and check that none of them is stored."""
    await send(urls)
    conversations: Any = (await live.caller.get("/v1/sms/conversations")).json["items"]
    messages: Any = (await live.caller.get(f"/v1/sms/conversations/{conversations[0]['id']}/messages")).json["items"]
    paths = [url.removeprefix(live.runtime.settings.base_url) for url in messages[0]["media_urls"]]
    assert len(paths) == len(urls)
    for path, url in zip(paths, urls, strict=True):
        file = await eventually(partial(live.caller.get, path), lambda response: response.status != 503)
        assert (file.status, "must be a public" in str(file.json["detail"])) == (404, True), (url, file)
    assert inside.requests == []


async def test_telnyx_fetches_from_public_addresses_only(
    runtime: Runtime, organizations: Organizations, inside: PrivateServer
) -> None:
    """The storage is at any address, so the callback's addresses are checked, and each redirect."""
    async with open_telnyx_line(runtime, organizations) as (line, telnyx):
        telnyx.redirects["moved"] = f"{inside.address}/metrics"
        port = inside.address.rpartition(":")[2]
        urls = [
            f"{inside.address}/metrics",
            f"http://[::1]:{port}/metrics",
            f"http://2130706434:{port}/metrics",
            f"{runtime.settings.base_url}/metrics",
            telnyx.storage_url("moved"),
        ]

        async def send(files: Sequence[str]) -> None:
            media = [{"url": url, "content_type": "image/png"} for url in files]
            await telnyx.text(PERSON, line.live.number, "Look", media=media)

        await check_nothing_is_fetched(line.live, inside, send, urls)


async def test_twilio_follows_redirects_to_public_addresses_only(
    runtime: Runtime, organizations: Organizations, inside: PrivateServer
) -> None:
    async with open_twilio_line(runtime, organizations) as (line, twilio):
        sid = new_sid("ME")
        twilio.redirects[sid] = f"{inside.address}/metrics"
        account = f"https://api.twilio.com/2010-04-01/Accounts/{twilio.account_sid}"

        async def send(files: Sequence[str]) -> None:
            await twilio.text(PERSON, line.live.number, "Look", NumMedia="1", MediaUrl0=files[0])

        urls = [f"{account}/Messages/{new_sid('MM')}/Media/{sid}"]
        await check_nothing_is_fetched(line.live, inside, send, urls)


async def test_plivo_follows_redirects_to_public_addresses_only(
    runtime: Runtime, organizations: Organizations, inside: PrivateServer
) -> None:
    async with open_plivo_line(runtime, organizations) as (line, plivo):
        media_id = str(uuid4())
        plivo.redirects[media_id] = f"{inside.address}/metrics"

        async def send(files: Sequence[str]) -> None:
            await plivo.text(PERSON, line.live.number, "Look", Type="mms", MediaCount="1", Media0=files[0])

        urls = [f"https://media.plivo.com/Account/{plivo.auth_id}/Message/{uuid4()}/Media/{media_id}"]
        await check_nothing_is_fetched(line.live, inside, send, urls)
