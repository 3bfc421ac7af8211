"""`Idempotency-Key`: the first response is stored for 24 hours and returned again.

The response is stored in the request's transaction, so that after a crash either both the effect and the response
exist, or neither. It is encrypted, because a response may hold a secret that is shown once.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func
from sqlmodel import and_, col, delete, select

from switchboard.foundation.database import SystemSession, WriteSession, is_among, is_in_batch, is_not_moving, now
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.web.errors import IdempotencyInFlight, IdempotencyMismatch, ValidationFailed
from switchboard.foundation.web.models import BODY_LABEL, IdempotencyRecord

KEPT_FOR = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key; `fingerprint` is the SHA-256 of its method, path, query, and body."""

    organization_id: UUID
    key: str
    fingerprint: bytes


def identify_request(organization_id: UUID, key: str, *, request_line: str, body: bytes) -> IdempotentRequest:
    """Identify a request by its key and content. Raises `ValidationFailed` for a key that is empty or over 255
    characters.
    """
    if not 0 < len(key) <= 255 or "\0" in key:
        raise ValidationFailed.field("Idempotency-Key", "must have 1 to 255 characters")
    fingerprint = hashlib.sha256(request_line.encode() + b"\n" + body).digest()
    return IdempotentRequest(organization_id, key, fingerprint)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The stored response of the first request."""

    status: int
    body: bytes


async def find_stored_response(
    session: WriteSession, request: IdempotentRequest, keyring: KeyRing
) -> StoredResponse | None:
    """Return the stored response; None for a first request, which the session's transaction then owns.

    Raises `IdempotencyInFlight` while the first request runs, and `IdempotencyMismatch` for another request with the
    same key.
    """
    lock = int.from_bytes(
        hashlib.sha256(request.organization_id.bytes + request.key.encode()).digest()[:8], signed=True
    )
    if not (await session.exec(select(func.pg_try_advisory_xact_lock(lock)))).one():
        raise IdempotencyInFlight
    record = await session.get(IdempotencyRecord, (request.organization_id, request.key))
    if record is None:
        return None
    if record.created_at < now() - KEPT_FOR:
        is_record = col(IdempotencyRecord.key) == request.key, session.owns(IdempotencyRecord)
        await session.exec(delete(IdempotencyRecord).where(*is_record))
        return None
    if record.request_hash != request.fingerprint:
        raise IdempotencyMismatch
    return StoredResponse(record.status, _decrypt_body(record, keyring).encode())


def store_response(session: WriteSession, request: IdempotentRequest, answer: StoredResponse, keyring: KeyRing) -> None:
    """Store the response in the request's transaction."""
    sealed = keyring.encrypt(answer.body.decode(), _label(request.organization_id, request.key)).encode()
    session.add(
        IdempotencyRecord(
            organization_id=request.organization_id,
            key=request.key,
            request_hash=request.fingerprint,
            status=answer.status,
            body=sealed,
        )
    )


def _decrypt_body(record: IdempotencyRecord, keyring: KeyRing) -> str:
    return keyring.decrypt(record.body.decode(), _label(record.organization_id, record.key))


def _label(organization_id: UUID, key: str) -> str:
    return BODY_LABEL.format(key=key, organization_id=organization_id)


async def delete_responses(session: WriteSession, keyring: KeyRing, is_wanted: Callable[[str], bool]) -> int:
    """Delete the organization's records whose key or response `is_wanted`, or cannot be read; return how many."""
    found = []
    async for record in await session.stream_scalars(session.select(IdempotencyRecord)):
        with suppress(SecretError):
            if not is_wanted(record.key) and not is_wanted(_decrypt_body(record, keyring)):
                continue
        found.append(record.key)
    ours = (session.owns(IdempotencyRecord), is_among(col(IdempotencyRecord.key), found))
    return (await session.exec(delete(IdempotencyRecord).where(*ours))).rowcount


async def delete_old_records(session: SystemSession) -> int:
    """Delete records of all organizations that are older than 24 hours, a batch at most; return how many."""
    is_old = col(IdempotencyRecord.created_at) < now() - KEPT_FOR
    old = is_in_batch(IdempotencyRecord, and_(is_old, is_not_moving(col(IdempotencyRecord.organization_id))))
    return (await session.exec(delete(IdempotencyRecord).where(old))).rowcount
