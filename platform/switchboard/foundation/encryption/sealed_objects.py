"""Encrypted objects that can be read in ranges: AES-256-GCM in blocks of 64 KiB, each of which is decrypted alone.

A header has the id of the organization's key and a salt; HKDF derives a key for this object from both and from the
object's name, so that nonces may count blocks and an object under another name does not decrypt. The last block is
marked, so that a shortened object does not decrypt either.
"""

import io
import os
from dataclasses import dataclass
from struct import Struct
from typing import IO, TYPE_CHECKING, Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from switchboard.foundation.keyring import DataKey, SecretError

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEADER: Final = Struct("4s16s16s")
"""Signature, id of the key, and salt."""
SIGNATURE: Final = b"SBE1"
BLOCK_BYTES: Final = 64 * 1024
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
LAST: Final = b"last"
"""Mark of the last block."""
SEALED_BYTES: Final = BLOCK_BYTES + TAG_BYTES


def seal(plain: IO[bytes], sealed: IO[bytes], key: DataKey, name: str) -> None:
    """Encrypt a file into another, and rewind that."""
    salt = os.urandom(16)
    sealed.write(HEADER.pack(SIGNATURE, key.id.bytes, salt))
    cipher = _derive_cipher(key, salt, name)
    block, number = plain.read(BLOCK_BYTES), 0
    while block or not number:
        following = plain.read(BLOCK_BYTES)
        sealed.write(cipher.encrypt(number.to_bytes(NONCE_BYTES), block, b"" if following else LAST))
        block, number = following, number + 1
    sealed.seek(0)


def parse_key_id(header: bytes) -> UUID | None:
    """Return the id of an object's key from its first bytes; None if it is not encrypted."""
    if len(header) < HEADER.size or not header.startswith(SIGNATURE):
        return None
    return UUID(bytes=HEADER.unpack(header)[1])


@dataclass(frozen=True, slots=True)
class SealedObject:
    """Decryption of an object. `size` is its plain size in bytes."""

    cipher: AESGCM
    size: int

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the encrypted object with the plain bytes from `start` to before `end`."""
        first, after = start // BLOCK_BYTES, -(-end // BLOCK_BYTES)
        last_byte = HEADER.size + self.size + self._blocks * TAG_BYTES
        return HEADER.size + first * SEALED_BYTES, min(HEADER.size + after * SEALED_BYTES, last_byte)

    def decrypt(self, data: bytes, start: int, end: int) -> bytes:
        """Return the plain bytes from `start` to before `end` from the range that `locate` returned.

        Raises `SecretError` if they were altered.
        """
        first = start // BLOCK_BYTES
        blocks = [data[place : place + SEALED_BYTES] for place in range(0, len(data), SEALED_BYTES)]
        try:
            plain = b"".join(
                self.cipher.decrypt(number.to_bytes(NONCE_BYTES), block, LAST if number == self._blocks - 1 else b"")
                for number, block in enumerate(blocks, first)
            )
        except InvalidTag:
            raise SecretError("an encrypted object cannot be decrypted: it was altered or moved") from None
        return plain[start - first * BLOCK_BYTES : end - first * BLOCK_BYTES]

    @property
    def _blocks(self) -> int:
        return max(1, -(-self.size // BLOCK_BYTES))


def open_sealed(header: bytes, size: int, key: DataKey, name: str) -> SealedObject:
    """Open an encrypted object of `size` bytes."""
    body = size - HEADER.size
    blocks = -(-body // SEALED_BYTES)
    return SealedObject(_derive_cipher(key, HEADER.unpack(header)[2], name), body - blocks * TAG_BYTES)


def open_sealed_file(file: io.RawIOBase, key: DataKey, name: str) -> io.BufferedReader:
    """Open an encrypted file for reading its plain bytes. A file that is not encrypted reads as an empty one."""
    source = io.BufferedReader(file)
    header, size = source.read(HEADER.size), source.seek(0, io.SEEK_END)
    sealed = open_sealed(header, size, key, name) if parse_key_id(header) else SealedObject(AESGCM(key.secret), 0)
    return io.BufferedReader(SealedFile(sealed, source), BLOCK_BYTES)


class SealedFile(io.RawIOBase):
    """A seekable file with the plain bytes of an encrypted one.

    libsndfile, which reads it through callbacks, cannot raise: what cannot be decrypted reads as the end of the file.
    """

    def __init__(self, sealed: SealedObject, source: "io.BufferedReader[io.RawIOBase]") -> None:
        """`source` is the encrypted file, which after an error reads as if it ended there."""
        super().__init__()
        self._sealed = sealed
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: "Buffer", /) -> int:
        """Read into a buffer, and return the number of bytes, up to the end of a block."""
        view, start = memoryview(target).cast("B"), self._position
        end = min(start + len(view), (start // BLOCK_BYTES + 1) * BLOCK_BYTES, self._sealed.size)
        if start >= end:
            return 0
        first, after = self._sealed.locate(start, end)
        self._source.seek(first)
        try:
            plain = self._sealed.decrypt(self._source.read(after - first), start, end)
        except SecretError:
            return 0
        view[: len(plain)] = plain
        self._position += len(plain)
        return len(plain)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._sealed.size}[whence]
        self._position = max(0, base + offset)
        return self._position


def _derive_cipher(key: DataKey, salt: bytes, name: str) -> AESGCM:
    info = f"switchboard object {name}".encode()
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(key.secret))
