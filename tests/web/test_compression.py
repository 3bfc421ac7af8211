"""Compressed responses: which are, for whom, and that their length varies."""

import gzip

from quart.typing import TestClientProtocol as Client
from switchboard.foundation.web.compression import compress_text

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People

STYLE = "/dashboard/static/css/base.css"


async def test_long_lists_are_compressed_for_clients_that_accept_it(caller: Caller) -> None:
    headers = {"Authorization": f"Bearer {caller.key}", "Accept-Encoding": "br, gzip;q=0.5"}
    for number in range(20):
        contact = {"phone_number": f"+1555010{number:04}", "notes": "Prefers the morning. " * 90}
        assert (await caller.post("/v1/contacts", contact)).status == 201
    short = await caller.client.get("/v1/contacts?limit=5", headers=headers)
    assert "Content-Encoding" not in short.headers
    plain = await caller.get("/v1/contacts")
    packed = await caller.client.get("/v1/contacts", headers=headers)
    content = await packed.get_data(as_text=False)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) == len(content) < len(plain.body) / 2
    assert gzip.decompress(content) == plain.body
    for response in (plain, packed):
        assert response.headers["Vary"] == "Accept-Encoding"


async def test_nobody_gets_what_they_do_not_accept(client: Client) -> None:
    for accepted in ("", "identity", "gzip;q=0", "br"):
        response = await client.get(STYLE, headers={"Accept-Encoding": accepted})
        assert "Content-Encoding" not in response.headers
        assert (await response.get_data(as_text=True)).startswith("/*")


async def test_files_are_compressed_and_revalidated(client: Client) -> None:
    packed = await client.get(STYLE, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(await packed.get_data(as_text=False)).startswith(b"/*")
    assert packed.headers["ETag"].startswith("W/")
    again = await client.get(STYLE, headers={"Accept-Encoding": "gzip", "If-None-Match": packed.headers["ETag"]})
    assert again.status_code == 304
    page = await client.get("/dashboard/sign-in", headers={"Accept-Encoding": "gzip"})
    assert b"Sign in" in gzip.decompress(await page.get_data(as_text=False))
    part = await client.get(STYLE, headers={"Accept-Encoding": "gzip", "Range": "bytes=0-1999"})
    assert (part.status_code, "Content-Encoding" in part.headers) == (206, False)
    sound = await client.get("/dashboard/static/sounds/silence.wav", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in sound.headers


async def test_short_responses_and_streams_are_not_compressed(caller: Caller, people: People) -> None:
    headers = {"Authorization": f"Bearer {caller.key}", "Accept-Encoding": "gzip"}
    for path in ("/v1/billing/balance", "/v1/exports/contacts", "/healthz"):
        response = await caller.client.get(path, headers=headers)
        assert response.status_code == 200
        assert "Content-Encoding" not in response.headers, path


def test_the_length_of_the_same_text_varies() -> None:
    text = b"csrf_token and what a query chose " * 100
    lengths = {len(compress_text(text)) for _ in range(50)}
    assert len(lengths) > 10
    assert gzip.decompress(compress_text(text)) == text
