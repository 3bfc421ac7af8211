"""Secrets at rest: bound to their place, readable after keys were changed."""

from pathlib import Path

import pytest
from switchboard.keyring import KeyRing, SecretError, load_or_create

PLACE = "agent|webhook_secret|1|2"


def test_a_secret_comes_back_in_its_place_only() -> None:
    ring = KeyRing(["a key"])
    sealed = ring.encrypt("whsec_x", PLACE)
    assert "whsec_x" not in sealed
    assert ring.decrypt(sealed, PLACE) == "whsec_x"
    with pytest.raises(SecretError):
        ring.decrypt(sealed, "agent|webhook_secret|other|2")
    with pytest.raises(SecretError):
        ring.decrypt(sealed[:-4] + "AAAA", PLACE)


def test_keys_can_be_changed() -> None:
    sealed = KeyRing(["old"]).encrypt("secret", PLACE)
    ring = KeyRing(["new", "old"])
    assert ring.decrypt(sealed, PLACE) == "secret"
    assert not ring.is_current(sealed)
    assert ring.is_current(ring.encrypt("secret", PLACE))
    with pytest.raises(SecretError, match="SWITCHBOARD_SECRET_KEYS"):
        KeyRing(["new"]).decrypt(sealed, PLACE)


def test_a_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    sealed = load_or_create([], tmp_path).encrypt("secret", PLACE)
    assert load_or_create([], tmp_path).decrypt(sealed, PLACE) == "secret"
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600
