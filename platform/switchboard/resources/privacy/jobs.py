"""Jobs of privacy requests: one worker claims a request, and another one claims it again if that worker dies."""

import asyncio
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.work import Work
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.privacy.erasure import ErasureRefused, PersonEraser
from switchboard.resources.privacy.export import PersonExporter
from switchboard.resources.privacy.export_files import EXPORT_CONTENT_TYPE, build_export_key
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.resources.privacy.queries import DUE_REQUESTS, lock_requests
from switchboard.resources.privacy.schemas import PrivacyReport
from switchboard.resources.privacy.service import JOB_SECONDS, decrypt_number
from switchboard.resources.stored_files import get_spool_folder

logger = structlog.get_logger()
LEASE: Final = timedelta(minutes=2)
RENEW_SECONDS: Final = 30.0
RETRY_AFTER: Final = timedelta(minutes=5)
"""Time until a request whose rows are still in use, or whose store cannot be reached, is taken up again."""
FILE_KEPT: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class PrivacyRequestRunner:
    settings: Settings
    database: Database
    keyring: KeyRing
    archive: RecordingArchive
    exporter: PersonExporter
    eraser: PersonEraser

    async def run_due_request(self, organization_id: UUID, request_id: UUID) -> None:
        """Carry out a request, unless another worker has claimed it; delete the file of an export that has expired."""
        async with self.database.write(organization_id) as session:
            request = await lock_row(session, PrivacyRequest, request_id)
            if request.due_at is None or request.due_at > now():
                return
            request.due_at = now() + LEASE
            is_over = request.completed_at is not None
            if not is_over:
                request.status = "running"
            number = decrypt_number(self.keyring, request)
        try:
            if is_over:
                await self.archive.delete_file(build_export_key(request))
                await self._save(request, due_at=None, file_expires_at=None)
            elif number is None:
                await self._end(request, "failed", error_message="The number was erased by another request.")
            elif request.kind == "export":
                await self._export(request, number)
            else:
                await self._erase(request, number)
        except ObjectStoreAway as error:
            logger.warning("a privacy request waits for the store", request_id=str(request_id), error=str(error))
            await self._save(request, due_at=now() + RETRY_AFTER)

    async def _renew_lease(self, request: PrivacyRequest) -> None:
        """Renew the lease until canceled, for an hour or longer: it lapses soon after its worker has died."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                async with self.database.write(request.organization_id) as session:
                    stored = await lock_row(session, PrivacyRequest, request.id)
                    if stored.completed_at is None:  # by a worker that claimed it after this lease had lapsed
                        stored.due_at = now() + LEASE
            except (SQLAlchemyError, OSError) as error:
                logger.warning("the lease of a privacy request was not renewed", error=type(error).__name__)

    async def _export(self, request: PrivacyRequest, number: str) -> None:
        folder = get_spool_folder(self.settings)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with run_beside(self._renew_lease(request)):
            with tempfile.TemporaryFile(dir=folder) as file:
                counted = await self.exporter.export(request.organization_id, number, file, actor=request.actor)
                file.seek(0)
                key = build_export_key(request)
                await self.archive.put_file(request.organization_id, key, file, EXPORT_CONTENT_TYPE)
        expires_at = now() + FILE_KEPT
        report = PrivacyReport(exported=dict(counted))
        await self._end(request, "completed", report=report.model_dump(), due_at=expires_at, file_expires_at=expires_at)

    async def _erase(self, request: PrivacyRequest, number: str) -> None:
        try:
            async with run_beside(self._renew_lease(request)):
                erased = await self.eraser.erase(request.organization_id, number, actor=request.actor)
        except ErasureRefused as error:
            await self._end(request, "failed", error_message=f"{error}.")
            return
        before = PrivacyReport.model_validate(request.report)  # of earlier runs of the erasure
        sums = {
            "deleted": Counter(before.deleted) + Counter(erased.deleted),
            "redacted": Counter(before.redacted) + Counter(erased.redacted),
        }
        report = erased.model_copy(update=sums).model_dump()
        if erased.waiting:
            await self._save(request, report=report, due_at=now() + RETRY_AFTER)
            return
        async with self.database.write(request.organization_id) as session:
            exports = await _forget_number(session, self.keyring, number)
        for export in exports:
            await self.archive.delete_file(build_export_key(export))
        await self._end(request, "completed", report=report)

    async def _end(self, request: PrivacyRequest, status: str, **fields: object) -> None:
        await self._save(request, **{"due_at": None, "status": status, "completed_at": now(), **fields})

    async def _save(self, request: PrivacyRequest, **fields: object) -> None:
        async with self.database.write(request.organization_id) as session:
            stored = await lock_row(session, PrivacyRequest, request.id)
            stored.sqlmodel_update(fields)


async def _forget_number(session: WriteSession, keyring: KeyRing, number: str) -> list[PrivacyRequest]:
    """Delete an erased number from all requests; return the exports, whose files are deleted too."""
    same = [request for request in await lock_requests(session) if decrypt_number(keyring, request) == number]
    for request in same:
        request.sealed_number = request.file_expires_at = None
    return [request for request in same if request.kind == "export"]


async def run_privacy_request(runner: PrivacyRequestRunner, *, organization_id: UUID, request_id: UUID) -> None:
    """Carry out a privacy request, unless another worker has claimed it."""
    await runner.run_due_request(organization_id, request_id)


WORK: Final = (Work(run_privacy_request, DUE_REQUESTS, seconds=5, at_once=2, job_seconds=JOB_SECONDS),)
