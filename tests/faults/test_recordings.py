"""Recordings in an S3 server that several processes share: fetched from the other process, found after `kill -9`, and
stored after an outage of the server.
"""

import asyncio
import io
import os
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from switchboard.apps.server import app
from switchboard.foundation.object_store import ObjectNotFound, ObjectStore, ObjectStoreAway
from switchboard.foundation.settings import Settings
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.media import call_runner
from switchboard.resources.calls.models import Call

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.command_line import start_command
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import connect_telephone
from tests.fixtures.object_store import S3Server, start_s3_server
from tests.fixtures.processes import kill_process, start_platform
from tests.fixtures.servers import SECRET_KEY

INTERVAL = 2.0


class Server:
    """A `serve` process with a data directory of its own."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.settings = Settings(data_dir=folder, port=find_free_port())
        self._environment = {
            **environment,
            "SWITCHBOARD_DATA_DIR": str(folder),
            "SWITCHBOARD_PORT": str(self.settings.port),
        }

    async def start(self) -> None:
        self._process = await asyncio.to_thread(start_command, ["serve"], {**os.environ, **self._environment})
        await wait_for_port(self.settings.host, self.settings.port)

    async def kill(self) -> None:
        await kill_process(self._process)

    @property
    def spool(self) -> list[Path]:
        return list((self.settings.data_dir / "spool").glob("*"))

    async def is_spool_empty(self) -> bool:
        return not self.spool

    async def fetch(self, live: LivePlatform, path: str, **headers: str) -> tuple[int, bytes]:
        headers["Authorization"] = f"Bearer {live.caller.key}"
        async with aiohttp.ClientSession() as http, http.get(self.settings.base_url + path, headers=headers) as found:
            return found.status, await found.read()

    def answer_calls(self, live: LivePlatform) -> LivePlatform:
        """Return the platform as seen by a carrier that sends its calls to this server."""
        return replace(live, runtime=replace(live.runtime, settings=self.settings))


@asynccontextmanager
async def start_server(environment: dict[str, str], folder: Path) -> AsyncIterator[Server]:
    server = Server(environment, folder)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def start_two_servers(folder: Path) -> AsyncIterator[tuple[LivePlatform, S3Server, Server, Server]]:
    """Two servers and two workers over one bucket; only the database and the bucket connect them."""
    async with start_s3_server() as s3:
        environment = {
            **s3.environment,
            "SWITCHBOARD_RECORDINGS_INTERVAL": str(INTERVAL),
            "SWITCHBOARD_DRAIN_SECONDS": "0",
        }
        with pytest.MonkeyPatch.context() as patch:
            for name, value in s3.environment.items():
                patch.setenv(name, value)
            async with start_platform(folder / "shared", worker_environment=environment) as (runtime, servers, _):
                environment |= {
                    "SWITCHBOARD_DATABASE_URL": servers.directory.database_url,
                    "SWITCHBOARD_REDIS_URL": servers.directory.redis_url,
                    "SWITCHBOARD_SECRET_KEYS": SECRET_KEY,
                }
                async with (
                    start_server(environment, folder / "one") as one,
                    start_server(environment, folder / "two") as two,
                ):
                    organizations = Organizations(runtime, app.create_app(runtime).test_client())
                    live = await create_bakery(runtime, await organizations.create(), fresh_number())
                    yield live, s3, one, two


def measure_seconds(recording: bytes) -> float:
    with wave.open(io.BytesIO(recording)) as file:
        return float(file.getnframes() / file.getframerate())


async def wait_for_recording(live: LivePlatform, call_id: object, *, seconds: float = 60) -> None:
    async def look() -> Json:
        return (await live.caller.get(f"/v1/calls/{call_id}")).json

    await eventually(look, lambda call: call["recording_url"] is not None, seconds=seconds)


@pytest.mark.system
@pytest.mark.timeout(400)
async def test_recordings_outlive_the_process_and_the_outage_of_the_store(tmp_path: Path) -> None:
    async with start_two_servers(tmp_path) as (live, s3, one, two):
        await _check_fetch_from_other_server(live, s3, one, two)
        await _check_outage(live, s3, one, two)
        await _check_killed_server(live, s3, one, two)


async def test_a_missing_bucket_is_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async with start_s3_server() as s3:
        for name, value in s3.environment.items():
            monkeypatch.setenv(name, value)
        store = ObjectStore("s3://nowhere/calls")
        with pytest.raises(ObjectStoreAway):
            await store.put("a/b.flac", b"audio", "audio/flac")
        with pytest.raises(ObjectStoreAway):
            await store.list_keys("a")
        with pytest.raises(ObjectNotFound):
            await store.find("a/b.flac")


async def test_a_full_disk_drops_the_recording_and_not_the_call(
    live: LivePlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled = tmp_path / "call.wav"
    spooled.symlink_to("/dev/full")  # accepts no byte
    monkeypatch.setattr(call_runner, "build_spool_path", lambda *_: spooled)
    async with connect_telephone(live) as caller:
        await caller.phone.wait(3)
    call = await live.wait_for_end(caller.call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "caller_hung_up")

    async def look() -> Call:
        return await calls.read_call(live.runtime.database, live.caller.organization_id, caller.call_id)

    found = await eventually(look, lambda found: found.recording_due_at is None)
    assert (found.has_recording, found.recording_error) == (False, "No space left on device")
    assert (await live.caller.get(f"/v1/calls/{caller.call_id}/recording")).status == 404


async def _check_fetch_from_other_server(live: LivePlatform, s3: S3Server, one: Server, two: Server) -> None:
    async with connect_telephone(one.answer_calls(live)) as caller:
        await eventually(s3.list_keys)
        assert (await two.fetch(live, f"/v1/calls/{caller.call_id}/recording"))[0] == 404
        segments = await s3.list_keys()
        assert segments[0].endswith(f"{caller.call_id}/000000.flac")
    await wait_for_recording(live, caller.call_id)
    status, recording = await two.fetch(live, f"/v1/calls/{caller.call_id}/recording")
    assert (status, await one.fetch(live, f"/v1/calls/{caller.call_id}/recording")) == (200, (200, recording))
    assert measure_seconds(recording) > 2 * INTERVAL - 2
    link = (await live.caller.get(f"/v1/calls/{caller.call_id}/recording-url")).json
    assert str(link["url"]).startswith(s3.endpoint)
    async with aiohttp.ClientSession() as http, http.get(str(link["url"])) as found:
        assert (found.status, found.content_type) == (200, "audio/flac") == (200, link["content_type"])
        flac = await found.read()
    assert await two.fetch(live, f"/v1/calls/{caller.call_id}/recording", Accept="audio/flac") == (200, flac)
    ranged = await two.fetch(live, f"/v1/calls/{caller.call_id}/recording", Range="bytes=1001-2000")
    assert ranged == (206, recording[1001:2001])

    async def list_leftovers() -> tuple[list[str], list[Path]]:
        return [key for key in await s3.list_keys() if str(caller.call_id) in key], one.spool

    expected = [f"calls/{live.caller.organization_id}/{caller.call_id}.flac"]
    await eventually(list_leftovers, lambda found: found == (expected, []))


async def _check_outage(live: LivePlatform, s3: S3Server, one: Server, two: Server) -> None:
    async with connect_telephone(one.answer_calls(live)) as caller:
        await caller.phone.wait(1)
        with s3.freeze():
            await caller.phone.wait(2 * INTERVAL)
            await caller.hang_up()
            call = await live.wait_for_end(caller.call_id)
            assert (call["status"], call["recording_url"]) == ("completed", None)
            assert call["ended_reason"] == "caller_hung_up"
            assert one.spool
    await wait_for_recording(live, caller.call_id)
    status, recording = await two.fetch(live, f"/v1/calls/{caller.call_id}/recording")
    assert (status, measure_seconds(recording) > 2 * INTERVAL) == (200, True)


async def _check_killed_server(live: LivePlatform, s3: S3Server, one: Server, two: Server) -> None:
    async with connect_telephone(one.answer_calls(live)) as caller:

        async def list_segments() -> list[str]:
            return [key for key in await s3.list_keys() if f"{caller.call_id}/" in key]

        # The first ones are short if the audio began late.
        await eventually(list_segments, lambda segments: len(segments) >= 3)
        await caller.phone.wait(1.5)  # the disk has more than the segments
        await one.kill()
        assert (await live.wait_for_end(caller.call_id))["status"] == "failed"
        await wait_for_recording(live, caller.call_id)
        status, recording = await two.fetch(live, f"/v1/calls/{caller.call_id}/recording")
        assert status == 200
        assert INTERVAL < measure_seconds(recording) < 5 * INTERVAL
        await eventually(list_segments, lambda segments: not segments)
    await one.start()

    async def fetch_seconds() -> float:
        status, recording = await two.fetch(live, f"/v1/calls/{caller.call_id}/recording")
        assert status == 200, recording
        return measure_seconds(recording)

    # The server that is back has the whole recording on its disk.
    await eventually(fetch_seconds, lambda seconds: seconds > measure_seconds(recording))
    await eventually(one.is_spool_empty)
