"""Secrets at rest: AES-256-GCM under a keyring. The first key encrypts, all decrypt, so that keys rotate without a
pause.

Each ciphertext is bound to its place (`table|column|row id|organization id`): copied into another row it does not
decrypt.
"""

import base64
import hashlib
import os
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_FILE = "secret.key"
VERSION = "v1"
NONCE_BYTES = 12


class SecretError(Exception):
    """A secret cannot be decrypted: no key of the ring made it, or it was moved or altered. The message reveals
    nothing of it.
    """


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key of an organization, 32 bytes, and its id."""

    id: UUID
    secret: bytes


def _stretch(key: str, purpose: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=f"switchboard {purpose}".encode()).derive(key.encode())


class KeyRing:
    """The keys, from text of any form."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raises `ValueError` without a key, or for an empty one."""
        if not keys or not all(keys):
            raise ValueError("a keyring needs at least one key, and no empty one")
        self._roots = {hashlib.sha256(key.encode()).hexdigest()[:8]: key for key in keys}
        self._keys = {fingerprint: _stretch(key, "encryption") for fingerprint, key in self._roots.items()}
        self.fingerprints = tuple(self._roots)
        """The id of each key in ciphertexts, 8 hexadecimal digits; the first key encrypts."""

    def encrypt(self, plain: str, place: str) -> str:
        """Encrypt to `v1.<fingerprint of the key>.<base64 of nonce and ciphertext>`."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(self._keys[self.fingerprints[0]]).encrypt(nonce, plain.encode(), place.encode())
        return f"{VERSION}.{self.fingerprints[0]}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def decrypt(self, sealed: str, place: str) -> str:
        """Decrypt. Raises `SecretError`."""
        version, _, rest = sealed.partition(".")
        fingerprint, _, text = rest.partition(".")
        key = self._keys.get(fingerprint)
        if version != VERSION or key is None:
            raise SecretError("a secret was encrypted under a key that is not in SWITCHBOARD_SECRET_KEYS")
        try:
            data = base64.urlsafe_b64decode(text)
            return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place.encode()).decode()
        except (InvalidTag, ValueError):
            raise SecretError("a secret cannot be decrypted: it was altered or moved") from None

    def derive(self, purpose: str) -> list[str]:
        """Derive signing keys for values that the server gives out and takes back, as itsdangerous expects them: the
        last, which is of the ring's first key, signs, and all verify.

        All, because processes with different first keys run side by side while keys are rotated
        (docs/decisions/0025-key-rotation.md).
        """
        return [_stretch(key, purpose).hex() for key in reversed(self._roots.values())]


def load_keyring(keys: Sequence[str], data_dir: Path) -> KeyRing:
    """Return the operator's keys, or the key that is created once in the data directory, readable only by its owner."""
    if keys:
        return KeyRing(keys)
    path = data_dir / KEY_FILE
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        # Atomically: two processes may start at once, and one may be killed in between.
        descriptor, made = tempfile.mkstemp(dir=data_dir, prefix=f"{KEY_FILE}.")
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            path.hardlink_to(made)
        Path(made).unlink()
    return KeyRing([path.read_text().strip()])
