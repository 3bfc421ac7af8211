"""`keys rotate`: the keys of SWITCHBOARD_SECRET_KEYS. `keys shred`: the key of an organization's recordings."""

from uuid import UUID

import click
from pydantic import JsonValue

from switchboard.apps.cli.session import Failure, as_json, open_runtime, print_result, require_organization, run_async
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.encryption import count_values_by_key, destroy_organization_key, rotate_keys
from switchboard.foundation.keyring import KeyRing
from switchboard.resources.calls.recordings.archive import KEY_PURPOSE
from switchboard.resources.identity.service import OPERATOR


@click.command("rotate")
@as_json
@run_async
async def rotate_secret_keys(as_json: bool) -> None:
    """Encrypt every secret again under the first key of SWITCHBOARD_SECRET_KEYS, while the platform serves. Exit
    status 1 if a secret remains under another key.
    """
    rotated = unreadable = 0
    async with open_runtime() as runtime:
        async for result in rotate_keys(runtime.database, runtime.keyring):
            rotated, unreadable = rotated + result.rotated, unreadable + result.unreadable
            click.echo(f"{result.column}: {result.rotated} encrypted again", err=True)
        counted = await count_values_by_key(runtime.database)
        keyring = runtime.keyring
    remaining = sum(counted.values()) - counted[keyring.fingerprints[0]]
    if as_json:
        print_result({"rotated": rotated, "remaining": remaining, "keys": _to_json(keyring, counted)}, as_json=True)
    else:
        click.echo("\n".join(_describe(keyring, counted)))
    if unreadable:
        click.echo(f"{unreadable} secrets were altered or moved, and cannot be decrypted: enter them again.", err=True)
    if remaining:
        raise SystemExit(1)


@click.command("shred")
@click.option("--org", "organization_id", type=UUID, required=True)
@click.confirmation_option(prompt="Every encrypted recording of the organization becomes unreadable for good. Shred?")
@as_json
@run_async
async def shred_recordings_key(organization_id: UUID, as_json: bool) -> None:
    """Destroy the key of an organization's recordings: nobody can read those that are encrypted under it any more.
    Later recordings get a new key.
    """
    async with open_runtime() as runtime:
        await require_organization(runtime.database, organization_id)
        async with runtime.database.tenant(organization_id, actor=OPERATOR) as session:
            key_id = await destroy_organization_key(session, KEY_PURPOSE)
            if key_id is None:
                raise Failure("the organization has no key for recordings: none is encrypted")
            record_audit(session, AuditAction.RECORDINGS_KEY_DESTROYED, key_id)
    print_result({"id": str(organization_id), "key_id": str(key_id)}, as_json=as_json)


def _to_json(keyring: KeyRing, counted: dict[str, int]) -> list[JsonValue]:
    return [
        {"fingerprint": key, "rows": counted.get(key, 0), "configured": key in keyring.fingerprints}
        for key in _list_fingerprints(keyring, counted)
    ]


def _describe(keyring: KeyRing, counted: dict[str, int]) -> list[str]:
    lines = []
    for fingerprint in _list_fingerprints(keyring, counted):
        values = counted.get(fingerprint, 0)
        if fingerprint == keyring.fingerprints[0]:
            note = "the first key, which encrypts"
        elif fingerprint not in keyring.fingerprints:
            note = "MISSING in SWITCHBOARD_SECRET_KEYS: add it, and run this command again"
        elif values:
            note = "still in use: run this command again once every process has the new order of keys"
        else:
            note = "not in use: remove it once every process has the new order of keys"
        lines.append(f"{fingerprint}: {values} secrets, {note}")
    return lines


def _list_fingerprints(keyring: KeyRing, counted: dict[str, int]) -> list[str]:
    return [*keyring.fingerprints, *sorted(counted.keys() - set(keyring.fingerprints))]
