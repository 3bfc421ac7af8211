"""`doctor`: check an installation from end to end. Silence on the first call is the most frequent complaint."""

import secrets
from collections.abc import AsyncIterator
from uuid import UUID

import aiohttp
import click
from pydantic import JsonValue
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col, select

from switchboard.apps.cli.findings import Finding
from switchboard.apps.cli.output import Failure, as_json, print_result, run_async
from switchboard.apps.cli.phone import RealCarrier, use_simulated_carrier, wait_for_settled_call
from switchboard.apps.cli.session import open_runtime, require_organization
from switchboard.apps.cli.trunk_calls import E164, TrunkCall, measure_trunk_calls
from switchboard.apps.model_ends import ModelEndCheck
from switchboard.apps.running_processes import list_restarts
from switchboard.engine.providers.checks import SettingsCheck
from switchboard.engine.providers.default_detector import find_default_detector
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.database import Database, ReadReplica, ReplicaNotUsable
from switchboard.foundation.encryption.system_queries import count_values_by_key
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.object_store import ObjectNotFound, ObjectStore, ObjectStoreAway
from switchboard.plugin_sdk import ProviderError, SpokenLine
from switchboard.plugin_sdk.registry import CAPABILITIES, Capability
from switchboard.resources.agents import service as agents
from switchboard.resources.identity.models import Organization
from switchboard.resources.phone_numbers import service as numbers
from switchboard.runtime import Runtime

REACH_SECONDS = 10.0
CHECK_FOLDER = "doctor"
"""Prefix of the object that the check of the store writes and deletes."""


@click.command()
@click.option(
    "--trunk-call",
    "to_number",
    metavar="NUMBER",
    help="Place a real call to this number over each organization's own trunks, and measure the sound of both ways.",
)
@click.option("--org", "organization_id", type=click.UUID, help="Place it for this organization only.")
@as_json
@run_async
async def doctor(to_number: str | None, organization_id: UUID | None, as_json: bool) -> None:
    """Check the whole installation, a call included, and say what to fix. Exit status 1 if a check fails."""
    if to_number is not None and not E164.fullmatch(to_number):
        raise click.BadParameter(
            "write the number in international form, such as +12125550100", param_hint="--trunk-call"
        )
    findings: list[Finding] = []
    async with open_runtime() as runtime:
        order = None if to_number is None else TrunkCall(to_number, organization_id)
        if organization_id is not None:
            await require_organization(runtime.database, organization_id)
        async for finding in _examine(runtime, order):
            findings.append(finding)
            if not as_json:
                _show(finding)
    if as_json:
        listed: list[JsonValue] = [
            {"what": finding.subject, "ok": finding.well, "advice": finding.advice} for finding in findings
        ]
        print_result({"ok": all(finding.well for finding in findings), "findings": listed}, as_json=True)
    if not all(finding.well for finding in findings):
        raise SystemExit(1)


def _show(finding: Finding) -> None:
    mark = click.style("ok  ", fg="green") if finding.well else click.style("FIX ", fg="red")
    click.echo(f"{mark}{finding.subject}" + (f"\n    {finding.advice}" if finding.advice else ""))


async def _examine(runtime: Runtime, trunk_call: TrunkCall | None) -> AsyncIterator[Finding]:
    database = await _database(runtime.database)
    yield database
    if runtime.replica.is_configured:
        yield await _replica(runtime.replica)
    yield await _redis(runtime.redis)
    yield await _recordings(runtime.recordings)
    mailer = runtime.call(Mailer)
    if mailer.is_set_up:
        yield await _mail(mailer)
    for plugin in runtime.registry.plugins:
        yield Finding(f"plugin {plugin.name}", not plugin.faults, "; ".join(plugin.faults))
    for finding in await _running_processes(runtime):
        yield finding
    reachable = await _public_address(runtime.settings.base_url)
    yield reachable
    if not database.well:
        return
    for finding in await _secret_keys(runtime.database, runtime.keyring):
        yield finding
    async with runtime.database.system() as session:
        organizations = (await session.exec(select(Organization))).all()
    for organization in organizations:
        async for finding in _settings(
            runtime.database, runtime.call(SettingsCheck), runtime.call(ModelEndCheck), organization
        ):
            yield finding
        async for finding in _calls(runtime, organization, trunk_call, reachable):
            yield finding


async def _calls(
    runtime: Runtime, organization: Organization, trunk_call: TrunkCall | None, reachable: Finding
) -> AsyncIterator[Finding]:
    async for finding in measure_trunk_calls(runtime.database, runtime.providers, organization, trunk_call):
        yield finding
    if reachable.well:
        yield await _call(runtime.database, runtime.providers, runtime.settings.base_url, organization)


async def _database(database: Database) -> Finding:
    try:
        async with database.system() as session:
            connection = await session.connection()
            role = (
                await connection.execute(
                    text("select current_user, rolsuper or rolbypassrls from pg_roles where rolname = current_user")
                )
            ).one()
            tables = (
                await connection.execute(
                    text("select count(*) from pg_class where relforcerowsecurity and relkind = 'r'")
                )
            ).scalar_one()
    except (SQLAlchemyError, OSError) as error:
        return Finding(
            "database",
            False,
            f"It cannot be used: {error}. Run `switchboard migrate`; docs/how-to/operating.md lists the privileges it "
            "needs.",
        )
    if role[1]:
        return Finding(
            "database",
            False,
            f"The role {role[0]} may bypass row-level security: `alter role {role[0]} nosuperuser nobypassrls`.",
        )
    return Finding(
        f"database: row-level security is forced on {tables} tables",
        tables > 0,
        "" if tables else "Run `switchboard migrate`.",
    )


async def _replica(replica: ReadReplica) -> Finding:
    try:
        await replica.check()
    except ReplicaNotUsable as error:
        return Finding("read replica", False, f"The primary answers all reads: {error}. docs/scaling.md has the rule.")
    return Finding("read replica", True)


async def _secret_keys(database: Database, keyring: KeyRing) -> list[Finding]:
    counted = await count_values_by_key(database)
    missing = sorted(counted.keys() - set(keyring.fingerprints))
    if missing:
        return [
            Finding(
                f"secret key {fingerprint}",
                False,
                f"{counted[fingerprint]} secrets are encrypted under it: add it to SWITCHBOARD_SECRET_KEYS of every "
                "process (docs/how-to/keys.md).",
            )
            for fingerprint in missing
        ]
    unused = [fingerprint for fingerprint in keyring.fingerprints[1:] if not counted[fingerprint]]
    advice = f"Not in use: {', '.join(unused)}. Remove it unless a rotation is in progress." if unused else ""
    return [Finding(f"secret keys: {counted.total()} secrets can be decrypted", True, advice)]


async def _redis(redis: Redis) -> Finding:
    try:
        await redis.time()
    except (RedisError, OSError) as error:
        return Finding(
            "redis",
            False,
            f"It cannot be used ({error}): calls start later, and rate limits apply per process.",
        )
    return Finding("redis", True)


async def _running_processes(runtime: Runtime) -> list[Finding]:
    restarts = await list_restarts(runtime.redis, runtime.registry)
    if restarts is None:
        return []
    return [Finding("plugins of a running process", False, restart) for restart in restarts] or [
        Finding("plugins of the running processes", True)
    ]


async def _recordings(recordings: ObjectStore) -> Finding:
    key = f"{CHECK_FOLDER}/{secrets.token_hex(8)}"
    try:
        await recordings.put(key, b"check", "text/plain")
        await recordings.list_keys(CHECK_FOLDER)
        await recordings.read(await recordings.find(key), 0, 5)
        await recordings.delete([key])
    except (ObjectStoreAway, ObjectNotFound) as error:
        return Finding(
            "store of recordings",
            False,
            f"It cannot be used ({error}): recordings stay on their server's disk. docs/how-to/recordings.md lists "
            "the permissions.",
        )
    return Finding("store of recordings", True)


async def _mail(mailer: Mailer) -> Finding:
    try:
        await mailer.check()
    except MailRefused as error:
        return Finding(
            "mail server", False, f"Neither invitations nor new passwords are sent: {error}. See SWITCHBOARD_SMTP_URL."
        )
    return Finding("mail server", True)


async def _public_address(base_url: str) -> Finding:
    url = f"{base_url}/readyz?probe={secrets.token_hex(4)}"
    advice = (
        "Carriers and browsers must reach it: set SWITCHBOARD_PUBLIC_URL to the address of your proxy or tunnel, "
        "and check that the server runs."
    )
    try:
        timeout = aiohttp.ClientTimeout(total=REACH_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            answered = response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        return Finding(
            f"public address {base_url}",
            False,
            f"It does not answer ({error or 'too slow'}). {advice}",
        )
    return Finding(
        f"public address {base_url}",
        answered == 200,
        "" if answered == 200 else f"It answered {answered}. {advice}",
    )


async def _settings(
    database: Database, settings: SettingsCheck, ends: ModelEndCheck, organization: Organization
) -> AsyncIterator[Finding]:
    async with database.tenant(organization.id) as session:
        rows = (
            await session.exec(
                session.select(ProviderConfiguration).order_by(
                    col(ProviderConfiguration.capability), col(ProviderConfiguration.position)
                )
            )
        ).all()
        default = find_default_detector(settings.extensions.registry, rows)
        if default is not None and not await agents.has_agent_with_turn_detector(session):
            default = None
    configured = [(CAPABILITIES[row.capability], row.name, "") for row in rows]
    if default is not None:
        configured.append((Capability.TURN_DETECTOR, default.name, " (default)"))
    for capability, name, note in configured:
        subject = f"{organization.name}: {capability.value} {name}{note}"
        try:
            parts = await settings.check(organization.id, capability, name)
            due = await ends.find(organization.id, capability, name)
        except ProviderError as error:
            yield Finding(subject, False, error.message)
            continue
        for part in parts:
            yield Finding(f"{subject}, {part.name}", part.works, part.message)
        if not parts:
            yield Finding(subject, True, "; ".join(end.describe() for end in due))


async def _call(database: Database, providers: Providers, base_url: str, organization: Organization) -> Finding:
    """Call the organization's first phone number over a carrier that can simulate callers; both sides must be heard."""
    async with database.tenant(organization.id) as session:
        number = (await session.exec(numbers.list_phone_numbers(session).limit(1))).one_or_none()
    if number is None:
        return Finding(f"{organization.name}: no phone number to call, no call tried", True)
    try:
        advice = await _ring(database, providers, base_url, number.phone_number)
    except RealCarrier as error:
        return Finding(f"{organization.name}: no call tried", True, str(error))
    except (Failure, ProviderError) as error:
        advice = str(error)
    return Finding(f"{organization.name}: a call with sound both ways", not advice, advice)


async def _ring(database: Database, providers: Providers, base_url: str, phone_number: str) -> str:
    """Place a test call; return the problem, or an empty text. Raises `Failure` and `ProviderError`."""
    async with use_simulated_carrier(database, providers, base_url, phone_number) as (
        carrier,
        callbacks,
        organization_id,
    ):
        lines = [SpokenLine(text="Hello")]
        call = await carrier.simulate_call(
            from_number="+15550100000", to_number=phone_number, lines=lines, callbacks=callbacks
        )
        if not call.answered:
            return (
                f"{phone_number} did not answer ({call.refused_reason}): check its agent, that the agent is active, "
                "and its schedule."
            )
        written = await wait_for_settled_call(database, organization_id, call.carrier_call_id)
    if written.error_message:
        return f"The call failed: {written.error_message}"
    if call.heard_seconds == 0:
        return (
            "The caller heard nothing: check the text-to-speech provider, and that the proxy passes WebSockets "
            "under /media/."
        )
    if not written.latencies:
        return "The agent did not answer the caller: check the speech-to-text provider and the model."
    return ""
