"""Settings: environment variables that start with `SWITCHBOARD_`. Only traces have variables of their own, which are
OpenTelemetry's (docs/how-to/observability.md).
"""

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from switchboard.plugin_sdk.public_addresses import NetworkPolicy

PREFIX = "SWITCHBOARD_"
MIN_KEY_LENGTH = 32
MAX_PROCESSES = 128


class OperatorError(Exception):
    """A command or process cannot go on; the message is one line that tells the operator what to do."""


class SettingsError(OperatorError):
    """The environment is invalid; the message is one line for the operator."""


def _comma_list(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _require_mail_server(url: SecretStr | None) -> SecretStr | None:
    if url is not None and not re.fullmatch(r"smtps?://([^/?#@]+@)?[^/?#@]+/?", url.get_secret_value()):
        raise ValueError("an address such as smtp://user:password@mail.example.com:587")
    return url


def _require_long_key(keys: list[SecretStr]) -> list[SecretStr]:
    # Shorter keys of earlier times still decrypt, so that they can be rotated away.
    if keys and len(keys[0].get_secret_value()) < MIN_KEY_LENGTH:
        raise ValueError(f"the first key needs {MIN_KEY_LENGTH} or more characters: openssl rand -base64 32")
    return keys


def _require_socket_origin(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        is_origin = bool(parts.hostname) and parts.port != 0 and not (parts.query or parts.fragment or parts.username)
    except ValueError:
        is_origin = False
    if not is_origin or parts.scheme not in ("ws", "wss") or parts.path not in ("", "/"):
        raise ValueError("an address without a path, such as wss://media-1.example.com")
    return url.rstrip("/")


class Settings(BaseSettings):
    """All settings; each has a default, so that none needs to be set."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    data_dir: Path = Field(
        Path(".switchboard"),
        description="Everything that the embedded default keeps: database, queue, vectors, recordings.",
    )
    host: str = Field("127.0.0.1", description="Where the API and the dashboard listen.")
    port: int = Field(8080, ge=1, le=65_535, description="The port of the API and the dashboard.")
    processes: int = Field(
        1,
        ge=1,
        le=MAX_PROCESSES,
        description=(
            "Processes of `switchboard serve`, which share its port; one for each core that carries calls. `make run` "
            "has one for each core but two, and four at most, unless this is set."
        ),
    )
    public_url: str = Field(
        "",
        description="The address that providers and browsers reach; empty means http://HOST:PORT.",
        pattern=r"^(https?://[^/?#]+/?)?$",
    )
    media_url: Annotated[str | None, AfterValidator(_require_socket_origin)] = Field(
        None,
        description=(
            "The address at which carriers reach this very server for the audio of calls, such as "
            "`wss://media-1.example.com`; empty: the audio goes to PUBLIC_URL, like all requests. Set it on all "
            "servers or on none."
        ),
    )
    region: str = Field(
        "",
        max_length=64,
        pattern=r"^(\S([^\n\r\t]*\S)?)?$",
        description=(
            "Name of the region in which the process runs, in logs, metrics, and the console. Calls prefer the servers "
            "of the region that have a MEDIA_URL."
        ),
    )
    trusted_proxies: int = Field(
        0,
        ge=0,
        le=10,
        description="Number of your proxies before the server: so many entries of `X-Forwarded-For` are trusted.",
    )
    oidc_issuer: str = Field(
        "",
        pattern=r"^(https?://[^?#]+)?$",
        description="An OpenID Connect provider for single sign-on; empty: passwords only.",
    )
    oidc_client_id: str = Field("switchboard", description="Client id at the provider.")
    oidc_client_secret: SecretStr | None = Field(
        None, description="Client secret at the provider; empty for a public client."
    )
    database_url: str | None = Field(
        None,
        pattern=r"^postgres(ql)?://",
        description=(
            "A PostgreSQL server of your own (`postgresql://…`, with libpq's parameters); empty means the embedded one."
        ),
    )
    read_database_url: str | None = Field(
        None,
        pattern=r"^postgres(ql)?://",
        description=(
            "A streaming replica of the PostgreSQL server, which answers lists and analytics as long as it keeps up; "
            "empty: the server answers them."
        ),
    )
    database_pool_size: int = Field(
        20,
        ge=2,
        le=1000,
        description="Connections to PostgreSQL that each process opens at most. One organization uses half of them.",
    )
    database_statement_timeout: float = Field(
        60, ge=0, description="Seconds that one SQL statement may take; 0: any time. Migrations have no limit."
    )
    redis_url: str | None = Field(
        None,
        pattern=r"^(rediss?(\+(sentinel|cluster))?|unix)://",
        description=(
            "A Redis of your own, with its login: `redis://…`, `rediss://…` (TLS), or with `+sentinel` or `+cluster` "
            "behind either; empty means the embedded one."
        ),
    )
    smtp_url: Annotated[SecretStr | None, AfterValidator(_require_mail_server)] = Field(
        None,
        description=(
            "Mail server for invitations and new passwords: `smtp://user:password@host:587` (STARTTLS, demanded if "
            "there is a login) or `smtps://…:465`; empty: people pass links on themselves."
        ),
    )
    mail_from: str = Field(
        "",
        pattern=r"^([^<>@]+<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)?$",
        description=(
            "Sender of e-mails, such as `Acme Telephony <phone@example.com>`; empty: `switchboard@` and the host of "
            "PUBLIC_URL."
        ),
    )
    secret_keys: Annotated[
        list[SecretStr], NoDecode, BeforeValidator(_comma_list), AfterValidator(_require_long_key)
    ] = Field(
        [],
        description=(
            "Comma list of keys that encrypt secrets at rest; the first, of 32 or more characters, encrypts, and all "
            "decrypt. Empty means one created in DATA_DIR."
        ),
    )
    recordings_url: str | None = Field(
        None,
        pattern=r"^(file:///|(s3|gs|az)://[^/]+).*$",
        description=(
            "Where recordings are stored: `file:///folder`, `s3://bucket/prefix`, `gs://bucket/prefix`, or "
            "`az://container/prefix`; empty means the folder `recordings` in DATA_DIR."
        ),
    )
    recordings_format: Literal["wav", "flac", "opus"] = Field(
        "flac", description="Format in which recordings are stored: `wav`, `flac` (lossless), or `opus` (smallest)."
    )
    recordings_interval: float = Field(
        30, gt=0, description="Seconds of a live call after which its recording so far is uploaded."
    )
    tenants_dir: Path = Field(Path("tenants"), description="The operator's organization files.")
    browser_sdks_dir: Path | None = Field(
        None,
        description=(
            "Folder with the carriers' client SDKs that you downloaded for the talk page; empty: the page uses the "
            "platform's own socket."
        ),
    )
    webhook_retry_delays: Annotated[list[Annotated[float, Field(ge=0)]], NoDecode, BeforeValidator(_comma_list)] = (
        Field(
            [30, 120, 600, 3600, 14_400],
            description="Seconds between one failed delivery attempt and the next.",
            min_length=1,
        )
    )
    webhook_timeout: float = Field(10, gt=0, description="Seconds that a receiver has to respond.")
    webhook_allowed_networks: Annotated[list[IPv4Network | IPv6Network], NoDecode, BeforeValidator(_comma_list)] = (
        Field(
            [],
            description="CIDRs exempt from the rule against private addresses, for development and private networks.",
        )
    )
    metrics_token: SecretStr | None = Field(
        None,
        min_length=16,
        description=(
            "What Prometheus sends as `Authorization: Bearer …` to read `/metrics`; empty: only programs on the same "
            "machine may, and only without a public address in PUBLIC_URL."
        ),
    )
    worker_port: int = Field(
        0, ge=0, le=65_535, description="Port of a worker's health endpoints and metrics, on HOST; 0: none."
    )
    campaign_tick: float = Field(1, gt=0, description="Seconds between looks for campaigns that have become due.")
    call_capacity: int = Field(
        400,
        ge=1,
        description=(
            "Live calls that one process of `serve` holds at most. While its event loop is late it holds fewer, and at "
            "least a quarter. When all processes are full, inbound calls get 503, and outbound calls wait."
        ),
    )
    drain_seconds: float = Field(
        3600,
        ge=0,
        description=(
            "Seconds that a stopping server waits for its live calls to end by themselves. `make run` waits 3 seconds "
            "unless this is set."
        ),
    )
    plugin_processes: int = Field(
        16,
        ge=1,
        le=1000,
        description=(
            'Processes of plugins (`process = "own"` in a tenant file) that each server and worker runs at most; idle '
            "ones make way for others."
        ),
    )
    plugin_memory_mb: int = Field(
        1024, ge=128, description="Megabytes of memory that a plugin's process may need before it is restarted."
    )
    trace_plugins: bool = Field(False, description="Log every hook call.")
    log_level: str = Field(
        "INFO",
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
        description="DEBUG, INFO, WARNING, or ERROR. `switchboard run` has WARNING by default.",
    )

    @property
    def base_url(self) -> str:
        """The public address without a trailing slash."""
        return (self.public_url or f"http://{self.host}:{self.port}").rstrip("/")

    def build_socket_url(self, path: str) -> str:
        """Build the address of a WebSocket: `wss` where the public address is `https`."""
        return f"ws{self.base_url.removeprefix('http')}{path}"

    @property
    def network_policy(self) -> NetworkPolicy:
        """Rules for requests to addresses that an organization, or anybody else, has chosen."""
        return NetworkPolicy(tuple(self.webhook_allowed_networks), self.base_url)


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings. Raises `SettingsError` for an unknown `SWITCHBOARD_` variable or a bad value."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    values = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    if unknown := sorted(values.keys() - known):
        raise SettingsError(
            f"{unknown[0]} is not a setting of Switchboard; the settings are listed in docs/reference/settings.md"
        )
    try:
        return TypeAdapter(Settings).validate_python(
            {name.removeprefix(PREFIX).lower(): value for name, value in values.items() if value}
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        message = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{PREFIX}{str(first['loc'][0]).upper()}: {message}") from None
