"""Logos of organizations."""

import struct
import zlib

import pytest
from switchboard.resources.identity.logos import MAX_LOGO_BYTES
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import PageResponse, People, Person

PAGE = "/dashboard/general"


def draw_png(width: int = 2, height: int = 2, extra: int = 0) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", b"x" * extra) + chunk(b"IEND", b"")


def draw_jpeg(width: int = 2, height: int = 2) -> bytes:
    frame = struct.pack(">BBHBHHB", 0xFF, 0xC0, 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff\xe0\x00\x04ab" + frame + b"\xff\xd9"


def draw_webp(width: int = 2, height: int = 2) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00" + b"\x00" * 4 + size


async def upload(person: Person, content: bytes) -> PageResponse:
    page = (await person.get(PAGE)).html
    token = page.partition('name="csrf_token" value="')[2].partition('"')[0]
    boundary = "logo-boundary"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token}\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="logo"; filename="logo"\r\n\r\n'
    ).encode()
    response = await person.client.post(
        f"{PAGE}/logo",
        data=body + content + f"\r\n--{boundary}--\r\n".encode(),
        headers={"Content-Type": f"multipart/form-data; boundary={boundary}", **person.headers},
    )
    return PageResponse(response.status_code, response.headers, await response.get_data(as_text=True))


async def find_address(person: Person) -> str:
    """Return the address of the logo in the navigation, empty without one."""
    page = (await person.get("/dashboard")).html
    return page.partition('<img class="own-logo" src="')[2].partition('"')[0]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(draw_png(), "image/png"), (draw_jpeg(), "image/jpeg"), (draw_webp(), "image/webp")],
)
async def test_an_owner_uploads_a_logo_that_anybody_may_see(
    people: People, caller: Caller, content: bytes, media_type: str
) -> None:
    owner = await people.join(caller.organization_id)
    assert await find_address(owner) == ""
    assert (await upload(owner, content)).status == 303
    address = await find_address(owner)
    served = await owner.client.__class__(owner.client.app).get(address)
    assert (served.status_code, await served.get_data(as_text=False)) == (200, content)
    assert served.headers["Content-Type"] == media_type
    assert served.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert served.headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in served.headers["Cache-Control"]
    assert (await owner.client.get(address[:-1] + ("0" if address[-1] != "0" else "1"))).status_code == 404


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"GIF89a" + b"\x02\x00" * 8,
        b"\xff\xd8\xff",
        b"RIFF\x00\x00\x00\x00WEBPVP8 ",
        draw_png(2001, 2),
        draw_png(0, 2),
        draw_jpeg(2, 2001),
        draw_webp(2, 16_000),
        draw_png(extra=MAX_LOGO_BYTES),
    ],
)
async def test_anything_else_is_refused(people: People, caller: Caller, content: bytes) -> None:
    owner = await people.join(caller.organization_id)
    assert (await upload(owner, content)).status == 422
    assert await find_address(owner) == ""


async def test_a_logo_is_replaced_and_removed(people: People, caller: Caller, runtime: Runtime) -> None:
    owner = await people.join(caller.organization_id)
    await upload(owner, draw_png())
    first = await find_address(owner)
    await upload(owner, draw_png(3, 3))
    assert await find_address(owner) not in ("", first)
    assert (await owner.client.get(first)).status_code == 404
    assert (await owner.post(f"{PAGE}/logo/remove")).status == 303
    assert await find_address(owner) == ""
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.get_one(Organization, caller.organization_id)).logo_digest is None


async def test_a_builder_may_not(people: People, caller: Caller) -> None:
    builder = await people.join(caller.organization_id, role="builder")
    assert (await builder.post(f"{PAGE}/logo")).status == 403
