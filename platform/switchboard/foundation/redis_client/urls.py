"""Addresses of Redis: one server, Sentinels, or the nodes of a cluster."""

from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from redis.asyncio import Connection
from redis.asyncio.connection import AbstractConnection, parse_url

SENTINEL_PORT = 26_379
REDIS_PORT = 6379


class InvalidRedisUrl(ValueError):
    """The URL names no Redis, or has a parameter that does not exist; the message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Servers of one Redis, and redis-py's options of a connection to them.

    `hosts` are the Sentinels, or some nodes of the cluster, as host and port; empty for one server, whose address is
    among the options. `service` is the name by which Sentinels know the primary; `sentinel_login` has `username` and
    `password` of the Sentinels themselves, or nothing.
    """

    kind: Literal["server", "sentinel", "cluster"]
    connection_class: type[AbstractConnection]
    options: dict[str, Any]
    hosts: tuple[tuple[str, int], ...] = ()
    service: str = ""
    sentinel_login: dict[str, Any] = field(default_factory=dict)


def parse_redis_url(url: str) -> RedisAddress:
    """Parse `redis://`, `rediss://` (TLS), and `unix://` as redis-py has them, and two forms for several servers.

    `redis+sentinel://user:password@host:port,host:port/service/database` names Sentinels, and
    `redis+cluster://host:port,host:port` nodes of a cluster; `rediss+…` is the same with TLS. Raises `InvalidRedisUrl`.
    """
    try:
        parts = urlsplit(url)
        scheme, _, kind = parts.scheme.partition("+")
        if not kind:
            options: dict[str, Any] = dict(parse_url(url))
            return RedisAddress("server", options.pop("connection_class", Connection), options)
        if scheme not in ("redis", "rediss") or kind not in ("sentinel", "cluster"):
            raise InvalidRedisUrl(f"{parts.scheme}:// is not a scheme of Redis")
        return _parse_hosts(parts._replace(scheme=scheme), sentinel=kind == "sentinel")
    except InvalidRedisUrl:
        raise
    except ValueError as error:
        # `urlsplit` quotes what it takes for a port, which may be a part of a password.
        wrong_port = str(error).startswith("Port")
        advice = "a port is not a number; special characters of a password must be percent-encoded"
        raise InvalidRedisUrl(advice if wrong_port else str(error)) from None


def _parse_hosts(parts: SplitResult, *, sentinel: bool) -> RedisAddress:
    login, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/") if sentinel else ("", "", parts.path.strip("/"))
    if sentinel and not service:
        raise InvalidRedisUrl("the name that the Sentinels know the primary by is missing: redis+sentinel://host/name")
    if database and not database.isdecimal():
        raise InvalidRedisUrl("the database is not a number; special characters of a password must be percent-encoded")
    if not sentinel and int(database or 0):
        raise InvalidRedisUrl("a cluster has database 0 only")
    each: list[dict[str, Any]] = [
        dict(parse_url(parts._replace(netloc=f"{login}{at}{host}", path=f"/{database}").geturl()))
        for host in hosts.split(",")
    ]
    if not all(options.get("host") for options in each):
        raise InvalidRedisUrl("a host is missing")
    options = {name: value for name, value in each[0].items() if name not in ("host", "port", "connection_class")}
    sentinel_login = {}
    if sentinel:
        names = {name for name in ("username", "password") if f"sentinel_{name}" in options}
        sentinel_login = {name: options.pop(f"sentinel_{name}") for name in names}
    return RedisAddress(
        "sentinel" if sentinel else "cluster",
        each[0].get("connection_class", Connection),
        options,
        tuple((one["host"], one.get("port", SENTINEL_PORT if sentinel else REDIS_PORT)) for one in each),
        unquote(service),
        sentinel_login,
    )
