"""Composition of the parts of a process: server, worker, or command."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import switchboard.migrations.tables  # noqa: F401 - rotations of keys, and erasures, go over every table
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.offers import VoiceCatalog
from switchboard.engine.providers.plugin_processes.plugin_process import PluginProcesses, ProcessLimits
from switchboard.foundation import keyring
from switchboard.foundation.database import Database, ReadReplica, SessionParts
from switchboard.foundation.jobs import Queue
from switchboard.foundation.languages import add_plugin_catalogs
from switchboard.foundation.leases import LeaseKeeper, LeaseWatch
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.redis_client import InvalidRedisUrl, RedisClients, open_redis_clients
from switchboard.foundation.settings import PREFIX, Settings, SettingsError
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.campaigns.dialer import update_campaign_contact as follow_campaign
from switchboard.resources.identity.service import encrypts_content
from switchboard.resources.stored_files import open_recording_store
from switchboard.runtime import Runtime

REPLY_SECONDS: Final = 5.0
"""Time beyond the limit of a statement until its reply must be there."""


@asynccontextmanager
async def open_process_runtime(
    settings: Settings, *, database_url: str, redis_url: str, registry: Registry | None = None
) -> AsyncIterator[Runtime]:
    """Build a process's parts, and close them at the end. Connections open on first use.

    Raises `SettingsError` for a store of recordings that cannot be opened, and for an invalid address of Redis.
    """
    recordings = open_recording_store(settings)
    redis = _open_redis(redis_url)
    queue = Queue(redis.commands, redis.blocking)
    ring = keyring.load_keyring([key.get_secret_value() for key in settings.secret_keys], settings.data_dir)
    plugins = registry or Registry.discover(trace=settings.trace_plugins)
    add_plugin_catalogs(plugin.package for plugin in plugins.plugins)
    session_parts = SessionParts(ring, plugins, queue.wake, (follow_campaign,), encrypts_content)
    database = Database(
        database_url,
        pool_size=settings.database_pool_size,
        statement_timeout=settings.database_statement_timeout,
        reply_timeout=_choose_reply_timeout(settings),
        parts=session_parts,
    )
    replica = _create_replica(settings, database, session_parts)
    processes = PluginProcesses(
        ProcessLimits(count=settings.plugin_processes, memory_bytes=settings.plugin_memory_mb * 1024**2),
        settings.log_level,
    )
    factory = ProviderFactory(plugins, settings.data_dir, processes, settings.network_policy)
    parts = Runtime(
        node=(node := secrets.token_hex(8)),
        settings=settings,
        database=database,
        replica=replica,
        redis=redis.commands,
        queue=queue,
        limiter=RateLimiter(redis.limits),
        registry=plugins,
        keyring=ring,
        providers=(providers := Providers(database, factory, ring)),
        voices=VoiceCatalog(providers),
        recordings=recordings,
        outbound=OutboundClient(settings.network_policy),
        engine=CallEngine(most_calls=settings.call_capacity),
        lease=LeaseKeeper(database, node),
        lease_watch=LeaseWatch(),
        recordings_due=asyncio.Event(),
    )
    try:
        yield parts
    finally:
        await parts.providers.close()
        await parts.outbound.close()
        await replica.close()
        await database.close()
        await redis.close()


def _choose_reply_timeout(settings: Settings) -> float:
    """Return the seconds after which a statement has lost its server; 0 if it may take any time."""
    return settings.database_statement_timeout and settings.database_statement_timeout + REPLY_SECONDS


def _create_replica(settings: Settings, database: Database, parts: SessionParts) -> ReadReplica:
    seconds = settings.database_statement_timeout
    replica = None
    if settings.read_database_url is not None:
        replica = Database(
            settings.read_database_url,
            pool_size=settings.database_pool_size,
            statement_timeout=seconds,
            reply_timeout=_choose_reply_timeout(settings),
            is_replica=True,
            parts=parts,
        )
    return ReadReplica(database, replica, seconds=seconds)


def _open_redis(url: str) -> RedisClients:
    try:
        return open_redis_clients(url)
    except InvalidRedisUrl as error:
        raise SettingsError(f"{PREFIX}REDIS_URL: {error}") from None
