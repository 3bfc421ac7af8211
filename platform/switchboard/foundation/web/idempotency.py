"""`Idempotency-Key`: the first response is stored for 24 hours and returned again.

The response is stored in the request's transaction, so that after a crash either both the effect and the response
exist, or neither. It is encrypted, because a response may hold a secret that is shown once.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Index, LargeBinary, func
from sqlmodel import Field, SQLModel, and_, col, delete, select

from switchboard.foundation.database import (
    SystemSession,
    WriteSession,
    encryption_label,
    is_among,
    is_in_batch,
    is_not_moving,
    now,
)
from switchboard.foundation.keyring import SecretError
from switchboard.foundation.web.errors import IdempotencyInFlight, IdempotencyMismatch, ValidationFailed

KEPT_FOR = timedelta(hours=24)
BODY_LABEL = "idempotency_record|body|{key}|{organization_id}"


class IdempotencyRecord(SQLModel, table=True):
    """The response to a request with an `Idempotency-Key`, stored in the request's transaction. Kept for 24 hours."""

    __tablename__ = "idempotency_record"
    __table_args__ = (Index(None, "created_at"),)

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    key: str = Field(primary_key=True)
    request_hash: bytes = Field(sa_type=LargeBinary)
    status: int
    body: bytes = Field(sa_type=LargeBinary, sa_column_kwargs=encryption_label(BODY_LABEL))
    created_at: datetime = Field(default_factory=now)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key; `fingerprint` is the SHA-256 of its method, path, query, and body."""

    key: str
    fingerprint: bytes


def identify_request(key: str, *, request_line: str, body: bytes) -> IdempotentRequest:
    """Identify a request by its key and content. Raises `ValidationFailed` for a key that is empty or over 255
    characters.
    """
    if not 0 < len(key) <= 255 or "\0" in key:
        raise ValidationFailed.field("Idempotency-Key", "must have 1 to 255 characters")
    fingerprint = hashlib.sha256(request_line.encode() + b"\n" + body).digest()
    return IdempotentRequest(key, fingerprint)


async def find_stored_response(session: WriteSession, request: IdempotentRequest) -> tuple[int, bytes] | None:
    """Return status and body of the stored response; None for a first request, which the session's transaction then
    owns.

    Raises `IdempotencyInFlight` while the first request runs, and `IdempotencyMismatch` for another request with the
    same key.
    """
    name = session.organization_id.bytes + request.key.encode()
    lock = int.from_bytes(hashlib.sha256(name).digest()[:8], signed=True)
    if not (await session.exec(select(func.pg_try_advisory_xact_lock(lock)))).one():
        raise IdempotencyInFlight
    record = await session.get(IdempotencyRecord, (session.organization_id, request.key))
    if record is None:
        return None
    if record.created_at < now() - KEPT_FOR:
        is_record = col(IdempotencyRecord.key) == request.key, session.owns(IdempotencyRecord)
        await session.exec(delete(IdempotencyRecord).where(*is_record))
        return None
    if record.request_hash != request.fingerprint:
        raise IdempotencyMismatch
    return record.status, _decrypt_body(session, record).encode()


def store_response(session: WriteSession, request: IdempotentRequest, status: int, body: bytes) -> None:
    """Store the response in the request's transaction."""
    sealed = session.keyring.encrypt(body.decode(), _label(session, request.key)).encode()
    session.add(
        IdempotencyRecord(
            organization_id=session.organization_id,
            key=request.key,
            request_hash=request.fingerprint,
            status=status,
            body=sealed,
        )
    )


def _decrypt_body(session: WriteSession, record: IdempotencyRecord) -> str:
    return session.keyring.decrypt(record.body.decode(), _label(session, record.key))


def _label(session: WriteSession, key: str) -> str:
    return BODY_LABEL.format(key=key, organization_id=session.organization_id)


async def delete_responses(session: WriteSession, is_wanted: Callable[[str], bool]) -> int:
    """Delete the organization's records whose key or response `is_wanted`, or cannot be read; return how many."""
    found = []
    async for record in await session.stream_scalars(session.select(IdempotencyRecord)):
        with suppress(SecretError):
            if not is_wanted(record.key) and not is_wanted(_decrypt_body(session, record)):
                continue
        found.append(record.key)
    ours = (session.owns(IdempotencyRecord), is_among(col(IdempotencyRecord.key), found))
    return (await session.exec(delete(IdempotencyRecord).where(*ours))).rowcount


async def delete_old_records(session: SystemSession) -> int:
    """Delete records of all organizations that are older than 24 hours, a batch at most; return how many."""
    is_old = col(IdempotencyRecord.created_at) < now() - KEPT_FOR
    old = is_in_batch(IdempotencyRecord, and_(is_old, is_not_moving(col(IdempotencyRecord.organization_id))))
    return (await session.exec(delete(IdempotencyRecord).where(old))).rowcount
