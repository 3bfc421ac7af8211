"""`keys rotate`: the keys of SWITCHBOARD_SECRET_KEYS. `keys reencrypt` and `keys shred`: an organization's keys."""

from uuid import UUID

import click

from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.encryption.content import KEY_PURPOSE, RETIRED_PURPOSE
from switchboard.foundation.encryption.organization_keys import destroy_organization_keys
from switchboard.foundation.encryption.rotation import (
    count_values_by_key,
    delete_unused_content_keys,
    reencrypt_content,
    retire_content_key,
    rotate_keys,
)
from switchboard.foundation.keyring import KeyRing
from switchboard.resources.identity.service import OPERATOR, get_policy
from switchboard.resources.stored_files import KEY_PURPOSE as RECORDINGS


@click.command("rotate")
@run_with_json
async def rotate_secret_keys(as_json: bool) -> None:
    """Encrypt every secret again under the first key of SWITCHBOARD_SECRET_KEYS, while the platform serves. Exit
    status 1 if a secret remains under another key.
    """
    rotated = unreadable = 0
    async with open_runtime() as runtime:
        async for result in rotate_keys(runtime.database, runtime.keyring):
            rotated, unreadable = rotated + result.rewritten, unreadable + result.unreadable
            click.echo(f"{result.name}: {result.rewritten} encrypted again", err=True)
        counted = await count_values_by_key(runtime.database)
        keyring = runtime.keyring
    remaining = sum(counted.values()) - counted[keyring.fingerprints[0]]
    if as_json:
        keys = [
            {"fingerprint": key, "rows": counted.get(key, 0), "configured": key in keyring.fingerprints}
            for key in _list_fingerprints(keyring, counted)
        ]
        print_result({"rotated": rotated, "remaining": remaining, "keys": keys}, as_json=True)
    else:
        click.echo("\n".join(_describe(keyring, counted)))
    if unreadable:
        click.echo(f"{unreadable} secrets were altered or moved, and cannot be decrypted: enter them again.", err=True)
    if remaining:
        raise SystemExit(1)


@click.command("reencrypt")
@click.option("--org", "organization_id", type=UUID, required=True)
@click.option("--new-key", is_flag=True, help="Encrypt under a new key, and delete the old one.")
@run_with_json
async def reencrypt_organization_texts(organization_id: UUID, new_key: bool, as_json: bool) -> None:
    """Encrypt an organization's texts from before, or decrypt them, as its `[encryption]` says, while the platform
    serves. An interrupted run is continued by another one without --new-key. Exit status 1 if a text cannot be
    decrypted.
    """
    rewritten = unreadable = 0
    async with open_runtime(organization_id) as runtime:
        database = runtime.database
        async with database.write(organization_id, actor=OPERATOR) as session:
            is_encrypted = (await get_policy(session, organization_id)).encryption.texts
            if new_key and not is_encrypted:
                raise Failure("[encryption] does not encrypt the organization's texts: a new key would be unused")
            if new_key:
                await retire_content_key(session)
        async for result in reencrypt_content(database, organization_id, is_encrypted=is_encrypted):
            rewritten, unreadable = rewritten + result.rewritten, unreadable + result.unreadable
            click.echo(f"{result.name}: {result.rewritten} rows written again", err=True)
        async with database.write(organization_id, actor=OPERATOR) as session:
            deleted = await delete_unused_content_keys(session)
            record_audit(session, AuditAction.TEXTS_REENCRYPTED, organization_id)
    counted = {"rewritten": rewritten, "unreadable": unreadable, "deleted_keys": len(deleted)}
    print_result({"id": str(organization_id), **counted}, as_json=as_json)
    if unreadable:
        raise SystemExit(1)


@click.command("shred")
@click.option("--org", "organization_id", type=UUID, required=True)
@click.confirmation_option(
    prompt="Every encrypted recording and text of the organization becomes unreadable for good. Shred?"
)
@run_with_json
async def shred_organization_keys(organization_id: UUID, as_json: bool) -> None:
    """Destroy the keys of an organization's recordings and texts: nobody can read what is encrypted under them any
    more. Later recordings and texts get new keys.
    """
    async with (
        open_runtime(organization_id) as runtime,
        runtime.database.write(organization_id, actor=OPERATOR) as session,
    ):
        recordings = await destroy_organization_keys(session, [RECORDINGS])
        texts = await destroy_organization_keys(session, [KEY_PURPOSE, RETIRED_PURPOSE])
        if not recordings + texts:
            raise Failure("the organization has no key for recordings or texts: none is encrypted")
        for key_id in recordings:
            record_audit(session, AuditAction.RECORDINGS_KEY_DESTROYED, key_id)
        for key_id in texts:
            record_audit(session, AuditAction.TEXTS_KEY_DESTROYED, key_id)
    print_result({"id": str(organization_id), "key_ids": list(map(str, recordings + texts))}, as_json=as_json)


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
