"""Logos of organizations: small pictures, which the database holds, so that replicas and backups have them."""

import hashlib
from typing import Final
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, WriteSession
from switchboard.foundation.web.errors import NotFound, ValidationFailed
from switchboard.resources.identity.models import Organization, OrganizationLogo

MAX_LOGO_BYTES: Final = 200_000
MAX_SIDE: Final = 2_000
"""Pixels. A small file can describe a picture that fills a browser's memory."""
JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of JPEG that begin a frame (ITU T.81, table B.1)."""


async def save_logo(session: WriteSession, content: bytes) -> None:
    """Save the organization's logo. Raises `ValidationFailed` for anything but a small PNG, JPEG, or WebP picture."""
    if len(content) > MAX_LOGO_BYTES:
        raise ValidationFailed.field("logo", "must have at most 200 KB")
    media_type, width, height = _read_picture(content)
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise ValidationFailed.field("logo", "must have at most 2,000 pixels on each side")
    organization = await session.get_one(Organization, session.organization_id)
    organization.logo_digest = hashlib.sha256(content).hexdigest()[:32]
    await session.merge(
        OrganizationLogo(organization_id=session.organization_id, media_type=media_type, content=content)
    )
    record_audit(session, AuditAction.ORGANIZATION_UPDATED, session.organization_id, fields=("logo",))


async def remove_logo(session: WriteSession) -> None:
    organization = await session.get_one(Organization, session.organization_id)
    organization.logo_digest = None
    if (kept := await session.get(OrganizationLogo, session.organization_id)) is not None:
        await session.delete(kept)
        record_audit(session, AuditAction.ORGANIZATION_UPDATED, session.organization_id, fields=("logo",))


async def load_logo(database: Database, organization_id: UUID, digest: str) -> OrganizationLogo:
    """Return the logo with this digest, which everybody who sees the logo knows. Raises `NotFound`."""
    async with database.read(organization_id) as session:
        organization = await session.get(Organization, organization_id)
        found = await session.get(OrganizationLogo, organization_id)
    if organization is None or found is None or organization.logo_digest != digest:
        raise NotFound
    return found


def _read_picture(content: bytes) -> tuple[str, int, int]:
    """Return media type, width, and height. Raises `ValidationFailed`."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
            return "image/png", int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
        if content.startswith(b"\xff\xd8\xff"):
            return "image/jpeg", *_read_jpeg_size(content)
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return "image/webp", *_read_webp_size(content)
    except IndexError:
        pass
    raise ValidationFailed.field("logo", "must be a PNG, JPEG, or WebP picture")


def _read_jpeg_size(content: bytes) -> tuple[int, int]:
    """Return width and height from the first frame. Raises `IndexError` if there is none before the picture's data."""
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in JPEG_FRAMES:
            return int.from_bytes(content[at + 7 : at + 9]), int.from_bytes(content[at + 5 : at + 7])
        # A marker may be padded; the length of a segment follows its marker.
        at += 1 if marker == 0xFF else 2 + int.from_bytes(content[at + 2 : at + 4])
    raise IndexError


def _read_webp_size(content: bytes) -> tuple[int, int]:
    """Return width and height of any of the three kinds of WebP (RFC 9649, RFC 6386 9.1)."""
    kind, body = content[12:16], content[20:30]
    if len(body) < 10:
        raise IndexError
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
