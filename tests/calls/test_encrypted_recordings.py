"""Recordings under a key of their organization: unreadable in the store, and for nobody without the key."""

from datetime import timedelta

import numpy as np
import pytest
import pytest_asyncio
from sqlmodel import col
from switchboard.engine.conversation.media.recording import HEADER
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import now
from switchboard.foundation.encryption.organization_keys import OrganizationKey
from switchboard.foundation.encryption.rotation import rotate_keys
from switchboard.foundation.encryption.sealed_objects import HEADER as SEALED_HEADER
from switchboard.foundation.encryption.sealed_objects import SEALED_BYTES
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.claims import recover_recording
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.resources.stored_files import FileDamaged
from switchboard.runtime import Runtime

from tests.calls.test_recordings import read_call, spool_recording, synthesize_frames, upload
from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call, write_recording
from tests.fixtures.command_line import Operator
from tests.fixtures.dashboard import People
from tests.fixtures.servers import SECRET_KEY

SECONDS = 40
"""Several blocks of 64 KiB."""


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update={"recordings_format": getattr(request, "param", "wav")})


@pytest_asyncio.fixture
async def caller(organizations: Organizations) -> Caller:
    return await organizations.create(policy=Policy(encryption=Encryption(recordings=True)))


async def store_recording(runtime: Runtime, caller: Caller) -> Call:
    call = await add_call(runtime, caller, now())
    spool_recording(runtime, call, synthesize_frames(SECONDS))
    await upload(runtime)
    return await read_call(runtime, call)


def list_stored(runtime: Runtime) -> list[bytes]:
    folder = runtime.settings.data_dir / "recordings"
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("settings", ["wav", "flac"], indirect=True)
async def test_a_client_gets_what_was_recorded_and_the_store_has_nothing_of_it(
    runtime: Runtime, caller: Caller
) -> None:
    call = await store_recording(runtime, caller)
    (stored,) = list_stored(runtime)
    assert not {b"RIFF", b"fLaC"} & {stored[place : place + 4] for place in range(100)}
    path = f"/v1/calls/{call.id}/recording"
    whole = await caller.get(path)
    played = np.frombuffer(whole.body[HEADER.size :], "<i2").reshape(-1, 2)
    assert np.array_equal(played, synthesize_frames(SECONDS))
    for begin, end in ((0, 10), (65_000, 66_100), (131_072, 400_000), (len(whole.body) - 5, len(whole.body) - 1)):
        part = await caller.send("GET", path, Range=f"bytes={begin}-{end}")
        assert (part.status, part.body) == (206, whole.body[begin : end + 1])
    link = (await caller.get(f"{path}-url")).json
    assert str(link["url"]).startswith(f"{runtime.settings.base_url}/recordings/")


async def test_a_recording_is_assembled_from_encrypted_segments(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now(), recording_due_at=now() - timedelta(seconds=1))
    frames = synthesize_frames()
    spooled = spool_recording(runtime, call, frames)
    await runtime.call(RecordingArchive).store_segment(call.organization_id, call.id, 0, spooled, first=0)
    spooled.unlink()
    assert b"fLaC" not in list_stored(runtime)[0]
    await runtime.call(recover_recording, organization_id=call.organization_id, call_id=call.id)
    whole = await caller.get(f"/v1/calls/{call.id}/recording")
    assert np.array_equal(np.frombuffer(whole.body[HEADER.size :], "<i2").reshape(-1, 2), frames)


@pytest.mark.parametrize("damage", ["changed", "shortened", "moved"])
async def test_an_altered_recording_is_not_played(runtime: Runtime, caller: Caller, damage: str) -> None:
    call, other = [await store_recording(runtime, caller) for _ in range(2)]
    folder = runtime.settings.data_dir / "recordings" / str(caller.organization_id)
    path = folder / f"{call.id}.wav"
    content = path.read_bytes()
    damaged = {
        "changed": content[:-1] + bytes([content[-1] ^ 1]),
        "shortened": content[: SEALED_HEADER.size + 2 * SEALED_BYTES],
        "moved": (folder / f"{other.id}.wav").read_bytes(),
    }
    path.write_bytes(damaged[damage])
    archive = runtime.call(RecordingArchive)
    stored = await archive.find(call)
    assert stored is not None
    with pytest.raises(FileDamaged):
        await archive.read(stored, 0, stored.size)


async def test_a_rotation_of_keys_changes_no_recording(runtime: Runtime, caller: Caller) -> None:
    call = await store_recording(runtime, caller)
    before = list_stored(runtime)
    async for _ in rotate_keys(runtime.database, KeyRing(["a new key", SECRET_KEY])):
        pass
    assert list_stored(runtime) == before
    assert await list_key_fingerprints(runtime, caller) == set(KeyRing(["a new key"]).fingerprints)
    async for _ in rotate_keys(runtime.database, KeyRing([SECRET_KEY, "a new key"])):
        pass
    assert (await caller.get(f"/v1/calls/{call.id}/recording")).status == 200


async def list_key_fingerprints(runtime: Runtime, caller: Caller) -> set[str]:
    async with runtime.database.write(caller.organization_id) as session:
        return {key.wrapped.split(".")[1] for key in (await session.exec(session.select(OrganizationKey))).all()}


async def test_a_shredded_recording_is_gone_and_later_ones_are_not(
    runtime: Runtime, caller: Caller, operator: Operator
) -> None:
    call = await store_recording(runtime, caller)
    options = ("--org", str(caller.organization_id), "--yes")
    operator.ask("keys", "shred", *options)
    for path in ("recording", "recording-url"):
        assert (await caller.get(f"/v1/calls/{call.id}/{path}")).status == 404
    again = operator.run("keys", "shred", *options)
    assert (again.returncode, "no key for recordings" in again.stderr) == (1, True)
    later = await store_recording(runtime, caller)
    assert (await caller.get(f"/v1/calls/{later.id}/recording")).status == 200
    assert (await caller.get(f"/v1/calls/{call.id}/recording")).status == 404


async def test_recordings_from_before_the_setting_are_played(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now(), has_recording=True)
    write_recording(runtime, call, caller=1, agent=1)
    assert (await caller.get(f"/v1/calls/{call.id}/recording")).status == 200


async def test_reading_is_an_entry_of_the_audit_log(runtime: Runtime, caller: Caller, people: People) -> None:
    call = await store_recording(runtime, caller)
    member = await people.join(caller.organization_id)
    for page in ("", "/recording"):
        assert (await member.get(f"/dashboard/calls/{call.id}{page}")).status == 200
    for path in ("recording", "recording-url", "transcript"):
        assert (await caller.get(f"/v1/calls/{call.id}/{path}")).status == 200
    async with runtime.database.write(caller.organization_id) as session:
        rows = session.select(AuditEntry).where(col(AuditEntry.subject) == str(call.id))
        entries = (await session.exec(rows.order_by(col(AuditEntry.id)))).all()
    user, key = f"user:{member.user_id}", f"key:{caller.key_id}"
    assert [(entry.actor, entry.action) for entry in entries] == [
        *((user, "transcript.read"), (user, "recording.read")),
        *((key, "recording.read"), (key, "recording.read"), (key, "transcript.read")),
    ]
