"""Settings: an unknown variable or a bad value is one clear line."""

import pytest
from switchboard.foundation.settings import SettingsError, load_settings

KEY = "k" * 32


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROT", "8080"),
        ("PORT", "http"),
        ("PORT", "0"),
        ("DATABASE_URL", "mysql://x"),
        ("REDIS_URL", "http://x"),
        ("RECORDINGS_URL", "recordings"),
        ("RECORDINGS_URL", "file://recordings"),
        ("RECORDINGS_URL", "s3://"),
        ("RECORDINGS_URL", "ftp://bucket"),
        ("RECORDINGS_FORMAT", "mp3"),
        ("RECORDINGS_INTERVAL", "0"),
        ("WEBHOOK_RETRY_DELAYS", "1,x"),
        ("WEBHOOK_ALLOWED_NETWORKS", "10.0.0.1/8"),
        ("PUBLIC_URL", "example.com"),
        ("MEDIA_URL", "https://media.example.com"),
        ("MEDIA_URL", "wss://"),
        ("MEDIA_URL", "wss://media.example.com/one"),
        ("MEDIA_URL", "wss://user@media.example.com"),
        ("MEDIA_URL", "wss://media.example.com:0"),
        ("MEDIA_URL", "wss://media.example.com:x"),
        ("REGION", "eu\nwest"),
        ("REGION", "x" * 65),
        ("LOG_LEVEL", "LOUD"),
        ("SECRET_KEYS", "k" * 31),
    ],
)
def test_invalid_settings_are_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"SWITCHBOARD_{name}") as refused:
        load_settings({f"SWITCHBOARD_{name}": value})
    assert "\n" not in str(refused.value)


def test_lists_are_comma_separated_and_the_public_address_has_a_default() -> None:
    settings = load_settings(
        {
            "SWITCHBOARD_WEBHOOK_RETRY_DELAYS": "1, 2.5",
            "SWITCHBOARD_PORT": "9000",
            "SWITCHBOARD_SECRET_KEYS": f"{KEY},b",
        }
    )
    assert settings.webhook_retry_delays == [1.0, 2.5]
    assert settings.base_url == "http://127.0.0.1:9000"
    assert [key.get_secret_value() for key in settings.secret_keys] == [KEY, "b"]


def test_a_media_address_says_what_it_looks_like() -> None:
    with pytest.raises(SettingsError, match="SWITCHBOARD_MEDIA_URL: an address without a path, such as wss://media-1"):
        load_settings({"SWITCHBOARD_MEDIA_URL": "media.example.com"})
    assert load_settings({"SWITCHBOARD_MEDIA_URL": "wss://[2001:db8::1]:8443/"}).media_url == "wss://[2001:db8::1]:8443"
    assert load_settings({}).media_url is None
