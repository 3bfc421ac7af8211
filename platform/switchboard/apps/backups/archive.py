"""The archive of a backup, or of one organization that is moved: a tar file that any tar reads, written once from its
beginning to its end.

    header.json                          versions, tables with their columns, keys
    tables/contact/000000.copy.gz        rows in PostgreSQL's text format, in parts
    recordings/<organization>/<call>     recordings, and with an organization its other files
    summary.json                         counts, and the SHA-256 of all bytes before it

An archive that was cut short has no summary. Memory is bounded by one part, however large the installation is.
"""

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel, ValidationError

from switchboard.foundation.settings import OperatorError

FORMAT = 1
HEADER, SUMMARY = "header.json", "summary.json"
CHUNK_BYTES = 1 << 20
DocumentT = TypeVar("DocumentT", bound=BaseModel)


class ArchiveError(OperatorError):
    """The file is not a whole archive."""


class ArchivedTable(BaseModel):
    """A table, with the columns in the order of its rows, and the months that it has tables of, such as `2026_11`."""

    name: str
    columns: list[str]
    months: list[str] = []


class ArchivedOrganization(BaseModel):
    """The organization that an archive is of, and what the target must have, or must not have.

    `numbers` are its phone numbers in use, `emails` those of its members, and `providers` its providers and extensions,
    each as `capability name`. Its secrets are encrypted under a key that is not in the archive, with the fingerprint
    `transfer_key`.
    """

    id: UUID
    name: str
    slug: str | None
    numbers: list[str]
    emails: list[str]
    providers: list[str]
    transfer_key: str


class ArchiveHeader(BaseModel):
    """Beginning of an archive. `tables` are in an order in which references point backward; `keys` counts encrypted
    values by the fingerprint of their key. `organization` is None for a backup of an installation.
    """

    format: int = FORMAT
    switchboard: str
    schema_revision: str
    created_at: str
    tables: list[ArchivedTable]
    keys: dict[str, int]
    organization: ArchivedOrganization | None = None


class ArchiveSummary(BaseModel):
    """End of an archive: rows by table, number of recordings, and the SHA-256 of all bytes before this member."""

    rows: dict[str, int]
    recordings: int
    sha256: str


class _HashingFile:
    """A file that hashes what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._written = 0
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self._written += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._written


class ArchiveWriter:
    """Appends members to an archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._hashing = _HashingFile(file)
        self._tar = tarfile.open(mode="w:", fileobj=cast("IO[bytes]", self._hashing))  # noqa: SIM115

    def add_bytes(self, name: str, content: bytes) -> None:
        self.add_file(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, content: IO[bytes], size: int) -> None:
        """Add a member with the next `size` bytes of a file."""
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o600
        self._tar.addfile(member, content)
        _forget_members(self._tar)

    def finish(self, rows: dict[str, int], recordings: int) -> None:
        """Add the summary, and end the archive."""
        summary = ArchiveSummary(rows=rows, recordings=recordings, sha256=self._hashing.digest.hexdigest())
        self.add_bytes(SUMMARY, summary.model_dump_json().encode())
        self._tar.close()


@contextmanager
def replace_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file beside its place, readable only by its owner, and rename it once it is whole."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        Path(name).rename(path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def read_members(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, IO[bytes]]]]:
    """Yield the members of an archive one after the other. Raises `ArchiveError`."""
    try:
        with tarfile.open(path, "r:") as tar:
            yield _iterate_members(tar)
    except FileNotFoundError:
        raise ArchiveError(f"there is no file {path}") from None
    except tarfile.TarError as error:
        raise ArchiveError(f"{path} is damaged or was cut short: {error}") from error


def read_header(path: Path) -> ArchiveHeader:
    """Return the beginning of an archive. Raises `ArchiveError` if the file is not a backup, or of a newer format."""
    with read_members(path) as members:
        member, content = next(members, (None, None))
        if member is None or content is None or member.name != HEADER:
            raise ArchiveError(f"{path} is not a backup of Switchboard, and no exported organization")
        header = _parse(ArchiveHeader, path, content.read())
    if header.format != FORMAT:
        raise ArchiveError(f"{path} has format {header.format}: restore it with Switchboard {header.switchboard}")
    return header


def verify_archive(path: Path) -> ArchiveSummary:
    """Compare an archive with its checksum, and return its end. Raises `ArchiveError`."""
    last, content = None, b""
    with read_members(path) as members:
        for member, file in members:
            last = member
            if member.name == SUMMARY:
                content = file.read()
    if last is None or last.name != SUMMARY:
        raise ArchiveError(f"{path} was cut short: its end is missing")
    summary = _parse(ArchiveSummary, path, content)
    if _hash(path, last.offset) != summary.sha256:
        raise ArchiveError(f"{path} is damaged: its content does not match its checksum")
    return summary


def _iterate_members(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    while (member := tar.next()) is not None:
        content = tar.extractfile(member)
        assert content is not None  # noqa: S101 - all members are files
        yield member, content
        _forget_members(tar)


def _forget_members(tar: tarfile.TarFile) -> None:
    """Clear the list of members, which would grow with the installation."""
    tar.members.clear()  # type: ignore[attr-defined]  # public, but not in the stubs


def _hash(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, CHUNK_BYTES))):
            digest.update(chunk)
            size -= len(chunk)
    return digest.hexdigest()


def _parse(kind: type[DocumentT], path: Path, content: bytes) -> DocumentT:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise ArchiveError(f"{path} is damaged: {error.errors()[0]['msg']}") from None
