"""Recordings in each stored format: whole and in ranges, as WAV and as stored, links, settings, and a full disk."""

import io
import json
import tempfile
import wave
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import IO
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import soundfile
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from structlog.testing import capture_logs
from switchboard.engine.conversation.media.recording import build_wav_header
from switchboard.foundation.database import Database, now
from switchboard.foundation.object_store import ObjectInfo, ObjectStore, ObjectStoreAway
from switchboard.foundation.settings import Settings, SettingsError
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.signed_links import LINK_LIFETIME
from switchboard.plugin_sdk.audio import Samples
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.claims import recover_recording
from switchboard.resources.calls.recordings.file_formats import BLOCK_FRAMES
from switchboard.resources.calls.recordings.spool import build_spool_path
from switchboard.resources.calls.recordings.uploads import RecordingUploader
from switchboard.resources.stored_files import open_recording_store
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import connect_telephone
from tests.fixtures.virtual_clock import CLOCK
from tests.fixtures.work import do_due_work

SECONDS = 20
STORED = {"wav": "audio/wav", "flac": "audio/flac", "opus": "audio/ogg"}


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update={"recordings_format": getattr(request, "param", "flac")})


def synthesize_frames(seconds: int = SECONDS) -> Samples:
    """A tone of the caller, then one of the agent, each for half of the time."""
    tone = 12_000 * np.sin(np.arange(seconds * 8000) * 2 * np.pi * 440 / 8000)
    speaks_agent = np.arange(len(tone)) >= len(tone) / 2
    return np.stack([np.where(speaks_agent, 0, tone), np.where(speaks_agent, tone, 0)], axis=1).astype("<i2")


def spool_recording(runtime: Runtime, call: Call, frames: Samples) -> Path:
    path = build_spool_path(runtime.settings, call.organization_id, call.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build_wav_header(len(frames)) + frames.tobytes())
    return path


async def read_call(runtime: Runtime, call: Call) -> Call:
    return await calls.read_call(runtime.database, call.organization_id, call.id)


async def upload(runtime: Runtime) -> None:
    await runtime.call(RecordingUploader).upload_spooled()


async def test_the_recording_of_a_live_call_is_not_asked_for(live: LivePlatform) -> None:
    uploader = live.runtime.call(RecordingUploader)
    async with connect_telephone(live) as telephone:
        path = build_spool_path(live.runtime.settings, live.caller.organization_id, telephone.call_id)

        async def is_spooled() -> bool:
            return path.exists()

        await eventually(is_spooled)
        nowhere = Database("postgresql://nobody@127.0.0.1:1/nothing")
        with capture_logs() as lines:
            await replace(uploader, database=nowhere).upload_spooled()
        assert [line for line in lines if "spool" in line["event"]] == [], "no statement for each call that goes on"


@pytest.mark.parametrize("settings", STORED, indirect=True)
async def test_a_recording_is_streamed_as_wav_and_as_stored(runtime: Runtime, caller: Caller) -> None:
    call, frames = await add_call(runtime, caller, now()), synthesize_frames()
    spooled = spool_recording(runtime, call, frames)
    await upload(runtime)
    assert not spooled.exists()
    path = f"/v1/calls/{call.id}/recording"
    whole = await caller.get(path)
    assert (whole.status, whole.headers["Content-Type"]) == (200, "audio/wav")
    assert int(whole.headers["Content-Length"]) == len(whole.body) == 44 + frames.nbytes
    with wave.open(io.BytesIO(whole.body)) as file:
        played = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2)
    if runtime.settings.recordings_format == "opus":
        assert np.corrcoef(played.T.ravel(), frames.T.ravel())[0, 1] > 0.99
    else:
        assert np.array_equal(played, frames)
    stored = STORED[runtime.settings.recordings_format]
    compressed = await caller.send("GET", path, Accept=stored)
    assert (compressed.status, compressed.headers["Content-Type"]) == (200, stored)
    with soundfile.SoundFile(io.BytesIO(compressed.body)) as audio:
        assert (audio.frames, audio.channels, audio.samplerate) == (len(frames), 2, 8000)
    other = next(content_type for content_type in STORED.values() if content_type not in (stored, "audio/wav"))
    assert (await caller.send("GET", path, Accept=other)).headers["Content-Type"] == "audio/wav"


async def test_ranges_of_a_recording(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now())
    spool_recording(runtime, call, synthesize_frames())
    await upload(runtime)
    path = f"/v1/calls/{call.id}/recording"
    for accepted in ("*/*", "audio/flac"):
        whole = await caller.send("GET", path, Accept=accepted)
        size = len(whole.body)
        for byte_range, start, end in (
            ("0-0", 0, 1),
            ("40-49", 40, 50),
            (f"{size // 2 + 1}-{size // 2 + 99}", size // 2 + 1, size // 2 + 100),
            ("1000-", 1000, size),
            ("-7", size - 7, size),
            (f"9-{size + 100}", 9, size),
        ):
            part = await caller.send("GET", path, Accept=accepted, Range=f"bytes={byte_range}")
            assert (part.status, part.body) == (206, whole.body[start:end]), byte_range
            assert part.headers["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
        beyond = await caller.send("GET", path, Accept=accepted, Range=f"bytes={size}-")
        assert (beyond.status, beyond.json["code"]) == (416, "range_not_satisfiable")
        assert beyond.headers["Content-Range"] == f"bytes */{size}"
        for malformed in (
            "bytes=x-y",
            "bytes=9-1",
            "bytes=",
            "bytes=--1",
            "bytes=1-2,x",
            "lines=1-2",
            "bytes=" + "9" * 400,
        ):
            odd = await caller.send("GET", path, Accept=accepted, Range=malformed)
            assert odd.status in (200, 206, 416), malformed
        unchanged = await caller.send("GET", path, Accept=accepted, If_None_Match=whole.headers["ETag"])
        assert (unchanged.status, unchanged.body) == (304, b"")
        head = await caller.send("HEAD", path, Accept=accepted)
        assert (head.status, head.headers["Content-Length"]) == (200, str(size))


async def test_a_link_needs_no_credential_and_expires(runtime: Runtime, caller: Caller, stranger: Caller) -> None:
    call = await add_call(runtime, caller, now())
    path = f"/v1/calls/{call.id}/recording-url"
    assert (await caller.get(path)).status == 404
    spool_recording(runtime, call, synthesize_frames())
    await upload(runtime)
    link = (await caller.get(path)).json
    assert link["content_type"] == "audio/flac"
    followed = urlsplit(str(link["url"])).path
    response = await caller.client.get(followed)
    assert (response.status_code, response.content_type) == (200, "audio/flac")
    assert (await response.get_data(as_text=False))[:4] == b"fLaC"
    assert (await caller.client.get(followed[:-3])).status_code == 404
    assert (await stranger.get(path)).status == 404
    CLOCK.advance(LINK_LIFETIME.total_seconds())
    assert (await caller.client.get(followed)).status_code == 404


async def test_segments_are_assembled_without_the_disk_of_the_process_that_died(
    runtime: Runtime, caller: Caller
) -> None:
    call = await add_call(runtime, caller, now())
    frames, stored = synthesize_frames(), runtime.call(RecordingArchive)
    spooled, first = spool_recording(runtime, call, frames), 0
    for number in range(3):
        first += await stored.store_segment(
            call.organization_id, call.id, number, spooled, first=first, most_frames=BLOCK_FRAMES
        )
    assert first == len(frames)
    spooled.unlink()
    await do_due_work(runtime, recover_recording)
    assert not (await read_call(runtime, call)).has_recording, "nothing is due"
    async with runtime.database.write(call.organization_id) as session:
        (await get_row(session, Call, call.id)).recording_due_at = now() - timedelta(seconds=1)
    await do_due_work(runtime, recover_recording)
    found = await read_call(runtime, call)
    assert (found.has_recording, found.recording_due_at) == (True, None)
    assert (await caller.get(f"/v1/calls/{call.id}/recording")).body[44:] == frames.tobytes()
    assert await runtime.recordings.list_keys(f"{call.organization_id}/{call.id}") == []


async def test_a_dropped_recordings_segments_are_deleted(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now(), recording_error="No space left on device", recording_due_at=now())
    spooled = spool_recording(runtime, call, synthesize_frames())
    await runtime.call(RecordingArchive).store_segment(call.organization_id, call.id, 0, spooled, first=0)
    spooled.unlink()
    await do_due_work(runtime, recover_recording)
    found = await read_call(runtime, call)
    assert (found.has_recording, found.recording_due_at) == (False, None)
    assert await runtime.recordings.list_keys(f"{call.organization_id}/{call.id}") == []


async def test_a_live_calls_recording_stays_in_the_spool(runtime: Runtime, caller: Caller) -> None:
    live = await add_call(runtime, caller, now(), status="in-progress")
    spooled = spool_recording(runtime, live, synthesize_frames())
    await upload(runtime)
    assert spooled.exists()


async def test_a_recording_of_an_older_version_is_played(runtime: Runtime, caller: Caller) -> None:
    call, frames = await add_call(runtime, caller, now(), has_recording=True), synthesize_frames(2)
    await runtime.recordings.put(
        f"{call.organization_id}/{call.id}.wav", build_wav_header(len(frames)) + frames.tobytes(), "audio/wav"
    )
    assert (await caller.get(f"/v1/calls/{call.id}/recording")).body[44:] == frames.tobytes()


@pytest.mark.parametrize("url", ["az://container/calls", "file:///proc/recordings"])
def test_a_store_that_cannot_be_opened_is_one_line(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(SettingsError, match=r"SWITCHBOARD_RECORDINGS_URL: .+") as refused:
        open_recording_store(Settings(recordings_url=url))
    assert "\n" not in str(refused.value)


async def test_azure_and_google_links_are_signed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", b64encode(b"key").decode())
    link = urlsplit(await ObjectStore("az://container/calls").sign_url("one.flac", timedelta(minutes=1)))
    assert (link.netloc, link.path) == ("account.blob.core.windows.net", "/container/calls/one.flac")
    assert parse_qs(link.query)["sig"]
    pem = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    account = {"type": "service_account", "client_email": "a@b.c", "private_key": pem.decode(), "private_key_id": "1"}
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    link = urlsplit(await ObjectStore("gs://bucket/calls").sign_url("one.flac", timedelta(minutes=1)))
    assert link.path.endswith("/bucket/calls/one.flac")
    assert parse_qs(link.query)["X-Goog-Signature"]


async def test_a_recording_that_is_replaced_while_it_is_read(runtime: Runtime, caller: Caller) -> None:
    """A server that is back stores the whole recording in place of what was assembled."""
    call, frames, stored = await add_call(runtime, caller, now()), synthesize_frames(), runtime.call(RecordingArchive)
    spool_recording(runtime, call, frames[:16_000])
    await upload(runtime)
    assembled = await stored.find(await read_call(runtime, call))
    assert assembled is not None
    audio = stored.open_audio(assembled)
    assert np.array_equal(audio.read(0, 8000), frames[:8000])
    spool_recording(runtime, call, frames)
    await upload(runtime)
    assert np.array_equal(audio.read(4000, 40_000), frames[4000:16_000])
    with pytest.raises(ObjectStoreAway):
        await runtime.recordings.read(assembled.file, 0, 100)


async def test_a_recording_that_is_replaced_while_it_is_looked_for(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, frames = await add_call(runtime, caller, now()), synthesize_frames()
    spool_recording(runtime, call, frames[:16_000])
    await upload(runtime)
    find = runtime.recordings.find

    async def find_and_replace(key: str) -> ObjectInfo:
        monkeypatch.undo()
        found = await find(key)
        spool_recording(runtime, call, frames)
        await upload(runtime)
        return found

    monkeypatch.setattr(runtime.recordings, "find", find_and_replace)
    answer = await caller.get(f"/v1/calls/{call.id}/recording")
    assert (answer.status, len(answer.body)) == (200, 44 + 4 * len(frames))


async def test_everything_of_a_recording_can_be_deleted(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now())
    stored = runtime.call(RecordingArchive)
    spooled = spool_recording(runtime, call, synthesize_frames())
    await stored.store_segment(call.organization_id, call.id, 0, spooled, first=0)
    await upload(runtime)
    await stored.store_segment(
        call.organization_id, call.id, 1, spool_recording(runtime, call, synthesize_frames()), first=0
    )
    await stored.delete_recording(call.organization_id, call.id)
    assert await runtime.recordings.list_keys(str(call.organization_id)) == []
    assert (await caller.get(f"/v1/calls/{call.id}/recording")).status == 404


def open_full_disk(**_: object) -> IO[bytes]:
    return Path("/dev/full").open("w+b")


@pytest.mark.parametrize("settings", STORED, indirect=True)
async def test_a_recording_waits_for_disk_space_to_be_encoded(runtime: Runtime, caller: Caller) -> None:
    call = await add_call(runtime, caller, now())
    spooled = spool_recording(runtime, call, synthesize_frames())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", open_full_disk)
        await upload(runtime)
    assert spooled.exists()
    assert not (await read_call(runtime, call)).has_recording
    await upload(runtime)
    assert (await read_call(runtime, call)).has_recording
