"""Connections to PostgreSQL by a URL as libpq takes it (PostgreSQL manual, section 34.1.1)."""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from switchboard.foundation.database.connection import PreambleConnection
from switchboard.foundation.settings import PREFIX, OperatorError

WITHOUT_EFFECT = frozenset(
    {
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "sslcompression",
        "sslsni",
        "tcp_user_timeout",
    }
)
"""Parameters of libpq without a counterpart in asyncpg, which change nothing but timing."""


class DatabaseUrlError(OperatorError, ValueError):
    """A parameter of the database's URL cannot be honored."""

    def __str__(self) -> str:
        return f"{PREFIX}DATABASE_URL: {super().__str__()}"


def create_engine(url: str, **options: Any) -> AsyncEngine:
    """Create an engine, without connecting, with these options of SQLAlchemy's `create_async_engine`.

    Of the URL's parameters asyncpg reads `sslmode` and the other `ssl…` ones, `host`, `service`, `passfile`, and
    `target_session_attrs`, and sends every other one to the server as a setting (`application_name`, `options`). This
    function reads `connect_timeout`, and `statement_cache_size`, which is asyncpg's name: with 0, statements are
    prepared without a name and for one transaction only, as a pooler in transaction mode needs it. Raises
    `DatabaseUrlError`.
    """
    connect, dsn = _read_parameters(url)
    arguments = {"dsn": dsn, "connection_class": PreambleConnection, **connect}
    return create_async_engine("postgresql+asyncpg://", connect_args=arguments, **options)


def has_named_statements(url: str) -> bool:
    """Return whether a prepared statement outlives its transaction: not with `statement_cache_size=0`."""
    arguments, _ = _read_parameters(url)
    return arguments.get("statement_cache_size") != 0


def _read_parameters(url: str) -> tuple[dict[str, Any], str]:
    """Return the arguments for asyncpg that the URL's parameters mean, and the URL with the rest of them."""
    parts = urlsplit(url)
    parameters = {name: value for name, value in parse_qsl(parts.query) if name not in WITHOUT_EFFECT}
    if parameters.pop("channel_binding", "prefer") == "require":
        raise DatabaseUrlError("channel_binding=require is not supported; use sslmode=verify-full")
    arguments: dict[str, Any] = {}
    if (seconds := _pop_number(parameters, "connect_timeout")) is not None:
        arguments["timeout"] = seconds or None
    if (size := _pop_number(parameters, "statement_cache_size")) is not None:
        arguments |= {"statement_cache_size": size, "prepared_statement_cache_size": size}
        if size == 0:
            arguments["prepared_statement_name_func"] = str
    return arguments, urlunsplit(parts._replace(query=urlencode(parameters)))


def _pop_number(parameters: dict[str, str], name: str) -> int | None:
    value = parameters.pop(name, None)
    if value is not None and not value.isdecimal():
        raise DatabaseUrlError(f"{name} must be a whole number, not {value!r}")
    return None if value is None else int(value)
