"""Business rules of privacy requests."""

from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import WriteSession, now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.resources.privacy.erasure import ErasureRefused, require_erasable
from switchboard.resources.privacy.models import NUMBER_LABEL, PrivacyRequest
from switchboard.resources.privacy.schemas import PrivacyRequestCreate, PrivacyRequestOut

JOB_SECONDS = 3600
"""Time for one request: an erasure reads every text of the organization."""


async def create_privacy_request(
    session: WriteSession, data: PrivacyRequestCreate, *, keyring: KeyRing
) -> PrivacyRequest:
    """Create a request, which a job carries out once the transaction commits.

    Raises `InvalidState` for an erasure under a legal hold, or of a number in the organization's configuration.
    """
    if data.kind == "erase":
        try:
            await require_erasable(session, data.phone_number)
        except ErasureRefused as error:
            raise InvalidState(f"{error}.") from error
    request = PrivacyRequest(
        organization_id=session.organization_id,
        kind=data.kind,
        actor=session.actor or "system",
        due_at=now(),
    )
    request.sealed_number = keyring.encrypt(data.phone_number, _format_label(request))
    session.add(request)
    record_audit(session, AuditAction.PRIVACY_REQUEST_CREATED, request.id, fields=(data.kind,))
    session.wake("run_privacy_request")
    return request


async def read_export_file(session: WriteSession, request_id: UUID) -> PrivacyRequest:
    """Return an export whose file exists, and record in the audit log who reads it. Raises `NotFound`."""
    request = await get_row(session, PrivacyRequest, request_id)
    if not has_file(request):
        raise NotFound("The request has no file.")
    record_audit(session, AuditAction.PRIVACY_EXPORT_READ, request.id)
    return request


def has_file(request: PrivacyRequest) -> bool:
    """Return whether an export's file is there."""
    return request.file_expires_at is not None and request.file_expires_at > now()


def decrypt_number(keyring: KeyRing, request: PrivacyRequest) -> str | None:
    """Return the phone number of a request; None once it is erased. Raises `SecretError`."""
    return keyring.decrypt(request.sealed_number, _format_label(request)) if request.sealed_number else None


def describe_privacy_request(keyring: KeyRing, request: PrivacyRequest) -> PrivacyRequestOut:
    """Return a request as clients see it."""
    number = decrypt_number(keyring, request)
    return PrivacyRequestOut.model_validate({**request.model_dump(exclude={"sealed_number"}), "phone_number": number})


def _format_label(request: PrivacyRequest) -> str:
    return NUMBER_LABEL.format(id=request.id, organization_id=request.organization_id)
