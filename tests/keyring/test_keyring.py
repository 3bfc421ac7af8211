"""Secrets at rest: bound to their place, readable by every key of the ring, and silent when they cannot be read."""

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from switchboard.foundation.keyring import KEY_FILE, KeyRing, SecretError, load_keyring

PLACE = "provider_configuration|secrets|row-1|organization-1"
SECRET = "sk-hunter2-grüße"


@pytest.mark.parametrize("key", ["a", "correct horse battery staple", "0" * 300, "schlüssel-🔑"])
@pytest.mark.parametrize("plain", ["", SECRET, "x" * 100_000])
def test_encryption_round_trips_with_any_key_format(key: str, plain: str) -> None:
    ring = KeyRing([key])
    sealed = ring.encrypt(plain, PLACE)
    assert ring.decrypt(sealed, PLACE) == plain
    assert not plain or plain not in sealed
    assert key == "a" or key not in sealed


def test_equal_secrets_have_different_ciphertexts() -> None:
    ring = KeyRing(["key"])
    assert len({ring.encrypt(SECRET, PLACE) for _ in range(10)}) == 10


@pytest.mark.parametrize(
    "place", ["", PLACE.replace("row-1", "row-2"), PLACE.replace("organization-1", "organization-2"), PLACE + "|"]
)
def test_a_moved_ciphertext_cannot_be_decrypted(place: str) -> None:
    ring = KeyRing(["key"])
    with pytest.raises(SecretError, match="altered or moved"):
        ring.decrypt(ring.encrypt(SECRET, PLACE), place)


def test_the_first_key_encrypts_and_every_key_decrypts() -> None:
    old, rotated, new = KeyRing(["old"]), KeyRing(["new", "old"]), KeyRing(["new"])
    sealed = old.encrypt(SECRET, PLACE)
    assert rotated.decrypt(sealed, PLACE) == SECRET
    again = rotated.encrypt(SECRET, PLACE)
    with pytest.raises(SecretError, match="under a key that is not in"):
        new.decrypt(sealed, PLACE)
    assert new.decrypt(again, PLACE) == SECRET


def test_the_error_for_a_missing_key_reveals_no_secret() -> None:
    sealed = KeyRing(["old"]).encrypt(SECRET, PLACE)
    with pytest.raises(SecretError, match="SWITCHBOARD_SECRET_KEYS") as refused:
        KeyRing(["new"]).decrypt(sealed, PLACE)
    assert refused.value.__cause__ is None
    assert not any(part in str(refused.value) for part in (SECRET, sealed, "old", PLACE))


def test_every_altered_byte_is_detected() -> None:
    ring = KeyRing(["key"])
    version, key_id, text = ring.encrypt("short", PLACE).split(".")
    data = base64.urlsafe_b64decode(text)
    for at in range(len(data)):
        altered = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(SecretError):
            ring.decrypt(f"{version}.{key_id}.{base64.urlsafe_b64encode(altered).decode()}", PLACE)


@pytest.mark.parametrize(
    "sealed",
    ["", ".", "..", "v1", "v1..", "v2.{id}.AAAA", "v1.{id}.", "v1.{id}.AAAA", "v1.{id}.é", "v1.{id}.A", "plain text"],
)
def test_garbage_raises_a_secret_error(sealed: str) -> None:
    ring = KeyRing(["key"])
    with pytest.raises(SecretError):
        ring.decrypt(sealed.replace("{id}", ring.encrypt("", PLACE).split(".")[1]), PLACE)


@pytest.mark.parametrize("keys", [[], [""], ["key", ""]])
def test_a_keyring_without_a_key_is_refused(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one key"):
        KeyRing(keys)


def test_signing_keys_differ_by_purpose_and_from_the_encryption_key() -> None:
    ring = KeyRing(["key", "older"])
    assert ring.derive("links") == [*KeyRing(["older"]).derive("links"), *KeyRing(["key"]).derive("links")]
    assert not set(ring.derive("links")) & set(ring.derive("callbacks"))


def test_a_key_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with ThreadPoolExecutor(8) as pool:
        rings = list(pool.map(lambda _: load_keyring([], folder), range(16)))
    sealed = rings[0].encrypt(SECRET, PLACE)
    assert {ring.decrypt(sealed, PLACE) for ring in rings} == {SECRET}
    assert [path.name for path in folder.iterdir()] == [KEY_FILE]
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600


def test_configured_keys_precede_the_key_in_the_data_directory(tmp_path: Path) -> None:
    sealed = load_keyring(["operator's"], tmp_path).encrypt(SECRET, PLACE)
    assert KeyRing(["operator's"]).decrypt(sealed, PLACE) == SECRET
    assert list(tmp_path.iterdir()) == []
