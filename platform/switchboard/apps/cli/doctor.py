"""`doctor`: check an installation from end to end. Silence on the first call is the most frequent complaint."""

import re
import secrets
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import aiohttp
import click
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.phone import RealCarrier, use_simulated_carrier, wait_for_settled_call
from switchboard.apps.cli.queries import read_privileges
from switchboard.apps.cli.session import list_organizations, open_runtime
from switchboard.apps.model_ends import ModelEndCheck
from switchboard.apps.running_processes import list_restarts
from switchboard.engine.providers.checks import SettingsCheck
from switchboard.engine.providers.editing import list_providers
from switchboard.engine.providers.instances import list_provider_names
from switchboard.engine.providers.turn_prediction import find_default_detector
from switchboard.foundation.database import Database, ReplicaNotUsable
from switchboard.foundation.encryption.rotation import count_values_by_key
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.object_store import ObjectNotFound, ObjectStore, ObjectStoreAway
from switchboard.plugin_sdk import ProviderError, SpokenLine, TelephonyProvider, TrunkCarrier
from switchboard.plugin_sdk.registry import CAPABILITIES, Capability
from switchboard.resources.agents.queries import has_agent_with_turn_detector
from switchboard.resources.identity.models import Organization
from switchboard.resources.phone_numbers.queries import (
    list_numbers_at_carrier,
    list_phone_numbers,
)
from switchboard.runtime import Runtime

REACH_SECONDS = 10.0
CHECK_FOLDER = "doctor"
"""Prefix of the object that the check of the store writes and deletes."""
E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `advice` says what to do if it failed."""

    subject: str
    well: bool
    advice: str = ""


@click.command()
@click.option(
    "--trunk-call",
    "to_number",
    metavar="NUMBER",
    help="Place a real call to this number over each organization's own trunks, and measure the sound of both ways.",
)
@click.option("--org", "organization_id", type=click.UUID, help="Place it for this organization only.")
@run_with_json
async def doctor(to_number: str | None, organization_id: UUID | None, as_json: bool) -> None:
    """Check the whole installation, a call included, and say what to fix. Exit status 1 if a check fails."""
    if to_number is not None and not E164.fullmatch(to_number):
        raise click.BadParameter(
            "write the number in international form, such as +12125550100", param_hint="--trunk-call"
        )
    findings: list[Finding] = []
    async with open_runtime(organization_id) as runtime:
        async for finding in _examine(runtime, to_number, organization_id):
            findings.append(finding)
            if not as_json:
                mark = click.style("ok  ", fg="green") if finding.well else click.style("FIX ", fg="red")
                click.echo(f"{mark}{finding.subject}" + (f"\n    {finding.advice}" if finding.advice else ""))
    well = all(finding.well for finding in findings)
    if as_json:
        listed = [{"what": finding.subject, "ok": finding.well, "advice": finding.advice} for finding in findings]
        print_result({"ok": well, "findings": listed}, as_json=True)
    if not well:
        raise SystemExit(1)


async def _examine(runtime: Runtime, to_number: str | None, only: UUID | None) -> AsyncIterator[Finding]:
    """Check everything. The call to `to_number` is placed for one organization, or for all."""
    database = await _database(runtime.database)
    yield database
    if runtime.replica.is_configured:
        advice = "The primary answers all reads: {error}. docs/scaling.md has the rule."
        yield await _try("read replica", runtime.replica.check(), ReplicaNotUsable, advice=advice)
    advice = "It cannot be used ({error}): calls start later, and rate limits apply per process."
    yield await _try("redis", runtime.redis.time(), RedisError, OSError, advice=advice)
    advice = (
        "It cannot be used ({error}): recordings stay on their server's disk. docs/how-to/recordings.md lists "
        "the permissions."
    )
    trial = _use_store(runtime.recordings)
    yield await _try("store of recordings", trial, ObjectStoreAway, ObjectNotFound, advice=advice)
    mailer = runtime.call(Mailer)
    if mailer.is_set_up:
        advice = "Neither invitations nor new passwords are sent: {error}. See SWITCHBOARD_SMTP_URL."
        yield await _try("mail server", mailer.check(), MailRefused, advice=advice)
    for finding in await _plugins(runtime):
        yield finding
    reachable = await _public_address(runtime.settings.base_url)
    yield reachable
    if not database.well:
        return
    for finding in await _secret_keys(runtime.database, runtime.keyring):
        yield finding
    for organization in await list_organizations(runtime.database):
        async for finding in _settings(
            runtime.database, runtime.call(SettingsCheck), runtime.call(ModelEndCheck), organization
        ):
            yield finding
        async for finding in _calls(runtime, organization, to_number if only in (None, organization.id) else None):
            yield finding
        if reachable.well:
            yield await _call(runtime, organization)


async def _try(subject: str, check: Awaitable[object], *failures: type[Exception], advice: str) -> Finding:
    """Report whether a check passes, and otherwise its `{error}` in the advice."""
    try:
        await check
    except failures as error:
        return Finding(subject, False, advice.format(error=error))
    return Finding(subject, True)


async def _database(database: Database) -> Finding:
    try:
        async with database.system() as session:
            role, may_bypass, tables = await read_privileges(session)
    except (SQLAlchemyError, OSError) as error:
        advice = "Run `switchboard migrate`; docs/how-to/operating.md lists the privileges it needs."
        return Finding("database", False, f"It cannot be used: {error}. {advice}")
    if may_bypass:
        advice = f"The role {role} may bypass row-level security: `alter role {role} nosuperuser nobypassrls`."
        return Finding("database", False, advice)
    advice = "" if tables else "Run `switchboard migrate`."
    return Finding(f"database: row-level security is forced on {tables} tables", tables > 0, advice)


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


async def _plugins(runtime: Runtime) -> list[Finding]:
    findings = [
        Finding(f"plugin {plugin.name}", not plugin.faults, "; ".join(plugin.faults))
        for plugin in runtime.registry.plugins
    ]
    restarts = await list_restarts(runtime.redis, runtime.registry)
    findings += [Finding("plugins of a running process", False, restart) for restart in restarts or ()]
    return [*findings, Finding("plugins of the running processes", True)] if restarts == [] else findings


async def _use_store(recordings: ObjectStore) -> None:
    key = f"{CHECK_FOLDER}/{secrets.token_hex(8)}"
    await recordings.put(key, b"check", "text/plain")
    await recordings.list_keys(CHECK_FOLDER)
    await recordings.read(await recordings.find(key), 0, 5)
    await recordings.delete([key])


async def _public_address(base_url: str) -> Finding:
    subject, url = f"public address {base_url}", f"{base_url}/readyz?probe={secrets.token_hex(4)}"
    advice = (
        "Carriers and browsers must reach it: set SWITCHBOARD_PUBLIC_URL to the address of your proxy or tunnel, "
        "and check that the server runs."
    )
    try:
        timeout = aiohttp.ClientTimeout(total=REACH_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            answered = response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        return Finding(subject, False, f"It does not answer ({error or 'too slow'}). {advice}")
    return Finding(subject, answered == 200, "" if answered == 200 else f"It answered {answered}. {advice}")


async def _settings(
    database: Database, settings: SettingsCheck, ends: ModelEndCheck, organization: Organization
) -> AsyncIterator[Finding]:
    async with database.read(organization.id) as session:
        rows = sorted(await list_providers(session), key=lambda row: row.capability)
        default = find_default_detector(settings.extensions.registry, rows)
        if default is not None and not await has_agent_with_turn_detector(session):
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


async def _calls(runtime: Runtime, organization: Organization, to_number: str | None) -> AsyncIterator[Finding]:
    """Place a real call to a number over each of the organization's carriers with trunks, from its oldest number
    there, and measure the sound of both directions.
    """
    if to_number is None:
        return
    async with runtime.database.read(organization.id) as session:
        carriers = {
            name: await list_numbers_at_carrier(session, name)
            for name in await list_provider_names(session, Capability.TELEPHONY)
        }
    for name, own in carriers.items():
        subject = f"{organization.name}: a call over {name} to {to_number}"
        try:
            async with runtime.providers.use(organization.id, TelephonyProvider, name) as carrier:
                if not isinstance(carrier, TrunkCarrier):
                    continue
                if not own:
                    yield Finding(subject, False, "No call tried: enter a phone number of the trunk to call from.")
                    continue
                measured = await carrier.measure_call(own[0].phone_number, to_number)
        except ProviderError as error:
            yield Finding(subject, False, error.message)
            continue
        yield Finding(f"{subject}: {measured.message}", not measured.advice, measured.advice)


async def _call(runtime: Runtime, organization: Organization) -> Finding:
    """Call the organization's first phone number over a carrier that can simulate callers; both sides must be heard."""
    async with runtime.database.read(organization.id) as session:
        number = next(iter(await list_phone_numbers(session)), None)
    if number is None:
        return Finding(f"{organization.name}: no phone number to call, no call tried", True)
    try:
        advice = await _ring(runtime, number.phone_number)
    except RealCarrier as error:
        return Finding(f"{organization.name}: no call tried", True, str(error))
    except Failure as error:
        advice = str(error)
    return Finding(f"{organization.name}: a call with sound both ways", not advice, advice)


async def _ring(runtime: Runtime, phone_number: str) -> str:
    """Place a test call; return the problem, or an empty text. Raises `Failure`."""
    async with use_simulated_carrier(runtime, phone_number) as (carrier, callbacks, organization_id):
        lines = [SpokenLine(text="Hello")]
        call = await carrier.simulate_call(
            from_number="+15550100000", to_number=phone_number, lines=lines, callbacks=callbacks
        )
        if not call.answered:
            return (
                f"{phone_number} did not answer ({call.refused_reason}): check its agent, that the agent is active, "
                "and its schedule."
            )
        written = await wait_for_settled_call(runtime.database, organization_id, call.carrier_call_id)
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
