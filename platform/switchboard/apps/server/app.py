"""The application: the list of blueprints, and the composition of a process's parts."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hypercorn.middleware import ProxyFixMiddleware
from quart import Quart

from switchboard.apps.dashboard.routes import dashboard
from switchboard.apps.server.api_reference import blueprint as reference
from switchboard.apps.server.health import blueprint as health
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.plugin_processes.plugin_process import PluginProcesses, ProcessLimits
from switchboard.engine.providers.voices import VoiceCatalog
from switchboard.foundation import keyring
from switchboard.foundation.database import Database, DatabaseCheck, ReadReplica
from switchboard.foundation.encryption import KeyCheck
from switchboard.foundation.jobs import Queue
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.redis_client import InvalidRedisUrl, RedisClients, open_redis_clients
from switchboard.foundation.settings import PREFIX, Settings, SettingsError
from switchboard.foundation.web import context, problems
from switchboard.foundation.web.converters import PROVIDER, ProviderNameConverter
from switchboard.foundation.web.endpoint import MAX_BODY_BYTES
from switchboard.foundation.web.pipeline import resolve_handlers
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.routes import blueprint as agents
from switchboard.resources.analytics.routes import blueprint as analytics
from switchboard.resources.automations.routes import blueprint as automations
from switchboard.resources.billing.routes import blueprint as billing
from switchboard.resources.browser_calls.phone_socket import browser_phone_socket
from switchboard.resources.browser_calls.routes import blueprint as browser_calls
from switchboard.resources.browser_calls.service import PREFIX as BROWSER
from switchboard.resources.calls.live.channel import listen_for_messages
from switchboard.resources.calls.live.heartbeat import run_heartbeat
from switchboard.resources.calls.live.monitor_socket import serve_monitor_socket
from switchboard.resources.calls.live.tickets import PREFIX as LIVE
from switchboard.resources.calls.media.media_socket import PREFIX as MEDIA
from switchboard.resources.calls.media.media_socket import serve_media_socket
from switchboard.resources.calls.media.websockets import Handler, route_websockets
from switchboard.resources.calls.recordings.archive import open_recording_store
from switchboard.resources.calls.recordings.uploads import RecordingUploader
from switchboard.resources.calls.routes import blueprint as calls
from switchboard.resources.campaigns.outcomes import update_campaign_contact as follow_campaign
from switchboard.resources.campaigns.routes import blueprint as campaigns
from switchboard.resources.carrier_callbacks.routes import blueprint as carriers
from switchboard.resources.contacts.routes import blueprint as contacts
from switchboard.resources.do_not_call.routes import blueprint as do_not_call
from switchboard.resources.identity.authentication import Authenticator
from switchboard.resources.identity.credentials import ACCESS_TOKEN, API_KEY
from switchboard.resources.identity.service import encrypts_texts
from switchboard.resources.identity.system_queries import find_api_key
from switchboard.resources.integrations.routes import blueprint as integrations
from switchboard.resources.knowledge_bases.routes import blueprint as knowledge_bases
from switchboard.resources.oauth.routes import blueprint as oauth
from switchboard.resources.oauth.system_queries import find_access_token
from switchboard.resources.phone_numbers.routes import blueprint as phone_numbers
from switchboard.resources.privacy.routes import blueprint as privacy
from switchboard.resources.simulations.routes import blueprint as simulations
from switchboard.resources.sms.routes import blueprint as sms
from switchboard.resources.sms_media.routes import blueprint as sms_media
from switchboard.resources.usage.routes import blueprint as usage
from switchboard.resources.webhooks.routes import blueprint as webhooks
from switchboard.runtime import EXTENSION, Runtime

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

# In the order of the API reference.
BLUEPRINTS = (
    agents,
    calls,
    browser_calls,
    campaigns,
    contacts,
    do_not_call,
    privacy,
    phone_numbers,
    sms,
    sms_media,
    webhooks,
    billing,
    usage,
    analytics,
    automations,
    integrations,
    knowledge_bases,
    simulations,
    carriers,
    oauth,
    dashboard,
    reference,
    health,
)
# By path prefix.
SOCKETS: dict[str, Handler] = {MEDIA: serve_media_socket, LIVE: serve_monitor_socket, BROWSER: browser_phone_socket}
# Called for each event, in the transaction that publishes it.
TRANSACTIONAL_HANDLERS = (follow_campaign,)
# Kinds of credentials in `Authorization: Bearer`, by prefix.
CREDENTIALS = {API_KEY: find_api_key, ACCESS_TOKEN: find_access_token}


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
    database = Database(
        database_url,
        pool_size=settings.database_pool_size,
        statement_timeout=settings.database_statement_timeout,
        info={
            "queue": queue,
            "listeners": TRANSACTIONAL_HANDLERS,
            "keyring": ring,
            "encrypts_texts": encrypts_texts,
            "registry": plugins,
        },
    )
    replica = _create_replica(settings, database, ring)
    processes = PluginProcesses(
        ProcessLimits(count=settings.plugin_processes, memory_bytes=settings.plugin_memory_mb * 1024**2),
        settings.log_level,
    )
    providers = Providers(database, ProviderFactory(plugins, settings.data_dir, processes), ring)
    parts = Runtime(
        node=secrets.token_hex(8),
        settings=settings,
        database=database,
        database_check=DatabaseCheck(database),
        replica=replica,
        redis=redis.commands,
        queue=queue,
        limiter=RateLimiter(redis.limits),
        registry=plugins,
        keyring=ring,
        key_check=KeyCheck(database, ring),
        providers=providers,
        voices=VoiceCatalog(providers),
        recordings=recordings,
        outbound=OutboundClient(settings.webhook_allowed_networks, own_url=settings.base_url),
        engine=CallEngine(),
        deliveries_due=asyncio.Event(),
        runs_due=asyncio.Event(),
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


def _create_replica(settings: Settings, database: Database, ring: keyring.KeyRing) -> ReadReplica:
    seconds = settings.database_statement_timeout
    replica = None
    if settings.read_database_url is not None:
        replica = Database(
            settings.read_database_url,
            pool_size=settings.database_pool_size,
            statement_timeout=seconds,
            is_replica=True,
            info={"keyring": ring},
        )
    return ReadReplica(database, replica, seconds=seconds)


def _open_redis(url: str) -> RedisClients:
    try:
        return open_redis_clients(url)
    except InvalidRedisUrl as error:
        raise SettingsError(f"{PREFIX}REDIS_URL: {error}") from None


def create_routes() -> Quart:
    """Create an application with every route, not yet bound to a process's parts."""
    app = Quart("switchboard")
    app.config["MAX_CONTENT_LENGTH"] = app.config["MAX_FORM_MEMORY_SIZE"] = MAX_BODY_BYTES
    problems.install(app)
    app.url_map.converters[PROVIDER] = ProviderNameConverter
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app


def create_app(parts: Runtime) -> Quart:
    """Create the HTTP application of a process. Its engine starts and stops with it."""
    app = create_routes()
    app.extensions[EXTENSION] = parts
    _add_context(app, parts)
    _run_calls(app, parts)
    return app


def create_health_app(parts: Runtime) -> Quart:
    """Create the application of a process that serves only the health endpoints."""
    app = Quart("switchboard")
    app.register_blueprint(health)
    _add_context(app, parts)
    return app


def _add_context(app: Quart, parts: Runtime) -> None:
    app.extensions[context.EXTENSION] = context.WebContext(
        parts.database,
        parts.replica,
        parts.limiter,
        Authenticator(parts.database, CREDENTIALS),
        parts.keyring,
        resolve_handlers(app, parts.parts),
    )


def build_asgi_app(app: Quart, parts: Runtime) -> "ASGIFramework":
    """Return the application with its WebSockets, for any ASGI server. Behind trusted proxies it sees the client's
    address.
    """
    hops = parts.settings.trusted_proxies
    routed = route_websockets(app, parts.parts, SOCKETS)
    return ProxyFixMiddleware(routed, mode="legacy", trusted_hops=hops) if hops else routed


def _run_calls(app: Quart, parts: Runtime) -> None:
    background: list[asyncio.Task[None]] = []
    uploader = parts.call(RecordingUploader)

    @app.before_serving
    async def start() -> None:
        await parts.engine.start()
        background.append(asyncio.create_task(listen_for_messages(parts.redis, parts.node, parts.engine)))
        background.append(
            asyncio.create_task(run_heartbeat(parts.database, parts.engine, parts.settings.call_capacity))
        )
        background.append(asyncio.create_task(uploader.run()))

    @app.after_serving
    async def stop() -> None:
        await parts.engine.close()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await uploader.finish()
