"""Providers in processes of their own: what a fault costs, what a process knows, and when it ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from pydantic import JsonValue
from switchboard.engine.providers.plugin_processes import operating_system, plugin_process
from switchboard.engine.providers.plugin_processes.operating_system import ChildProcess
from switchboard.engine.providers.plugin_processes.plugin_process import ProcessLimits
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import ChatRequest, LLMProvider, Message, ProviderError, TextDelta
from switchboard.plugin_sdk.registry import Capability

from tests.fixtures.eventually import eventually
from tests.plugin_processes.faults import CAPABILITIES, LIMITS, AnyProvider, create_factory, create_faulty, use
from tests.plugin_processes.faulty_plugin import FORKED

SAID = "Faulty failed: "
HELLO = ChatRequest((Message("user", "Hello"),))


@asynccontextmanager
async def open_faulty(
    folder: Path, capability: Capability, *, limits: ProcessLimits = LIMITS, **settings: JsonValue
) -> AsyncIterator[AnyProvider]:
    """Open a faulty provider in a process of its own."""
    provider = create_faulty(create_factory(folder, limits), capability, settings)
    try:
        await provider.open()
        yield provider
    finally:
        await provider.close()


@pytest.mark.parametrize(
    "capability",
    [Capability.LLM, *(pytest.param(other, marks=pytest.mark.system) for other in CAPABILITIES[1:])],
)
async def test_a_plugin_that_ends_its_process_is_started_again(capability: Capability, tmp_path: Path) -> None:
    async with open_faulty(tmp_path, capability, fault="exit", once=True) as provider:
        with pytest.raises(ProviderError, match=f"^{SAID}the process of - - ended with exit status 7$"):
            await use(provider)
        with pytest.raises(ProviderError, match="ended with exit status 7"):
            await use(provider)
        assert await eventually(lambda: _try(provider), lambda result: result is not None)


async def test_a_refusal_keeps_its_code(tmp_path: Path) -> None:
    async with open_faulty(tmp_path, Capability.LLM, fault="refuse") as provider:
        with pytest.raises(ProviderError, match=r"^no credit left$") as refused:
            await use(provider)
    assert (refused.value.code, refused.value.retryable) == ("402", False)


@pytest.mark.parametrize(
    ("capability", "place", "method"),
    [
        (Capability.LLM, "constructor", "__init__"),
        (Capability.EMBEDDING, "call", "embed"),
        (Capability.SPEECH_TO_TEXT, "stream", "transcribe"),
    ],
)
async def test_an_exception_is_counted_as_in_the_platforms_process(
    capability: Capability, place: str, method: str, tmp_path: Path
) -> None:
    def count() -> float:
        labels = {"plugin": "-", "provider": "faulty", "method": method}
        return metrics.registry.get_sample_value("switchboard_plugin_exceptions_total", labels) or 0.0

    before = count()
    provider = create_faulty(create_factory(tmp_path), capability, {"fault": "raise", "place": place})
    with pytest.raises(ProviderError, match=f"KeyError in {method}"):
        await _open_and_use(provider)
    assert count() == before + 1


async def _open_and_use(provider: AnyProvider) -> None:
    try:
        await provider.open()
        await use(provider)
    finally:
        await provider.close()


@pytest.mark.parametrize("place", ["constructor", "open"])
@pytest.mark.parametrize("fault", ["raise", "exit", "block"])
async def test_a_plugin_that_cannot_start_is_a_failure(
    fault: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "block":
        monkeypatch.setattr(plugin_process, "START_SECONDS", 1.0)
    provider = create_faulty(create_factory(tmp_path), Capability.LLM, {"fault": fault, "place": place})
    with pytest.raises(ProviderError) as failure:
        await provider.open()
    expected = {"raise": "KeyError in", "exit": "ended while it started", "block": "was not ready within 1 seconds"}
    assert expected[fault] in failure.value.message
    with pytest.raises(ProviderError, match=expected[fault]):
        await use(provider)
    await provider.close()


async def test_a_process_that_is_closed_while_it_is_forked_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked, may_return, spawn = threading.Event(), threading.Event(), operating_system._spawn
    started: list[subprocess.Popen[bytes]] = []

    def spawn_slowly(given: socket.socket) -> subprocess.Popen[bytes]:
        started.append(spawn(given))
        forked.set()
        may_return.wait(20)
        return started[0]

    monkeypatch.setattr(operating_system, "_spawn", spawn_slowly)
    provider = create_faulty(create_factory(tmp_path), Capability.LLM, {})
    opening = asyncio.create_task(provider.open())
    assert await asyncio.to_thread(forked.wait, 20)
    closing = asyncio.create_task(provider.close())
    await asyncio.sleep(0)  # the start is canceled
    may_return.set()
    await closing
    with pytest.raises(ProviderError, match="was stopped"):
        await opening
    assert started[0].returncode == -signal.SIGKILL


async def test_a_process_that_is_closed_before_it_is_asked_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ChildProcess] = []
    reached = asyncio.Event()

    async def start() -> tuple[ChildProcess, socket.socket]:
        process, own = await operating_system.start_child()
        started.append(process)
        return process, own

    async def hang(*_: object) -> NoReturn:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(plugin_process, "start_child", start)
    monkeypatch.setattr(plugin_process.PluginProcess, "_open_provider", hang)
    provider = create_faulty(create_factory(tmp_path), Capability.LLM, {})
    opening = asyncio.create_task(provider.open())
    await reached.wait()
    await provider.close()
    with pytest.raises(ProviderError, match="was stopped"):
        await opening
    assert started[0].has_ended


async def test_the_caller_of_a_broken_stream_gets_what_came_before(tmp_path: Path) -> None:
    async with open_faulty(tmp_path, Capability.LLM, fault="exit", place="stream") as provider:
        assert isinstance(provider, LLMProvider)
        events = provider.chat(HELLO)
        assert await anext(events) == TextDelta("Hello, ")
        with pytest.raises(ProviderError, match="exit status 7"):
            await anext(events)


async def test_other_requests_go_on_while_one_hangs_and_is_canceled(tmp_path: Path) -> None:
    async with open_faulty(tmp_path, Capability.LLM, fault="hang", once=True) as provider:
        hanging = asyncio.create_task(use(provider))
        await eventually(lambda: _exists(tmp_path / "FaultyModel.done"), bool)
        assert await use(provider)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert await use(provider)


async def test_a_slow_reader_holds_an_endless_stream_back(tmp_path: Path) -> None:
    async with open_faulty(tmp_path, Capability.LLM, fault="endless") as provider:
        assert isinstance(provider, LLMProvider)
        async with aclosing(provider.chat(HELLO)) as events:  # type: ignore[type-var] # a generator
            await anext(events)
            # Without a limit the process would send, and grow, as fast as it can.
            await asyncio.sleep(2 * LIMITS.silence_seconds)
            assert await anext(events)
        assert await provider.check() is None  # type: ignore[func-returns-value]
        with pytest.raises(ProviderError, match="chat of - - returned more than 400000 characters"):
            await use(provider)


async def test_the_process_has_none_of_the_platforms_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHBOARD_DATABASE_URL", "postgres://secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with open_faulty(tmp_path, Capability.LLM, fault="environment") as provider:
        with pytest.raises(ProviderError) as listed:
            await use(provider)
    names = set(listed.value.message.split())
    assert "PATH" in names
    assert not {name for name in names if "SWITCHBOARD" in name or "KEY" in name or "TOKEN" in name}


async def test_what_a_plugin_has_forked_ends_with_its_process(tmp_path: Path) -> None:
    async with open_faulty(tmp_path, Capability.LLM, fault="fork") as provider:
        with pytest.raises(ProviderError, match="exit status 7"):
            await use(provider)
    forked = int((tmp_path / FORKED).read_text())
    assert await eventually(lambda: _is_gone(forked), bool)


async def test_idle_processes_make_way_and_busy_ones_do_not(tmp_path: Path) -> None:
    factory = create_factory(tmp_path)
    models = [create_faulty(factory, Capability.LLM, {"fault": "hang", "once": True}) for _ in range(3)]
    assert LIMITS.count == 2
    hanging = asyncio.create_task(use(models[0]))
    await eventually(lambda: _exists(tmp_path / "FaultyModel.done"), bool)
    (tmp_path / "FaultyModel.done").unlink()
    also_hanging = asyncio.create_task(use(models[1]))
    await eventually(lambda: _exists(tmp_path / "FaultyModel.done"), bool)
    with pytest.raises(ProviderError, match="2 processes of plugins are busy"):
        await models[2].open()
    also_hanging.cancel()
    await asyncio.wait((also_hanging,))
    assert await eventually(lambda: _try(models[2]), lambda result: result is not None)
    hanging.cancel()
    await asyncio.wait((hanging,))
    for model in models:
        await model.close()


HOST = """
import asyncio, sys
from pathlib import Path
from tests.plugin_processes.faults import create_factory, create_faulty, use
from switchboard.plugin_sdk.registry import Capability

async def main():
    provider = create_faulty(create_factory(Path(sys.argv[1])), Capability.LLM, {"fault": sys.argv[2]})
    await provider.open()
    print(provider.process.pid, flush=True)
    await asyncio.gather(use(provider), return_exceptions=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("fault", ["none", "block", "hang"])
async def test_the_process_dies_with_its_host(fault: str, tmp_path: Path) -> None:
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, str(tmp_path), fault, stdout=asyncio.subprocess.PIPE, env=_with_path()
    )
    assert host.stdout is not None
    pid = int(await host.stdout.readline())
    os.kill(pid, 0)
    host.kill()
    await host.wait()
    assert await eventually(lambda: _is_gone(pid), bool)


async def test_a_killed_process_costs_its_requests_and_nothing_else(tmp_path: Path) -> None:
    async with open_faulty(tmp_path, Capability.LLM) as provider:
        pid = provider.process.pid  # type: ignore[attr-defined]
        os.kill(pid, signal.SIGKILL)
        began = time.perf_counter()
        assert await eventually(lambda: _try(provider), lambda result: result is not None)
        assert time.perf_counter() - began < 30
        assert provider.process.pid != pid  # type: ignore[attr-defined]


def _with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}


async def _try(provider: AnyProvider) -> object:
    try:
        return await use(provider)
    except ProviderError:
        return None


async def _exists(path: Path) -> bool:
    return path.exists()


async def _is_gone(pid: int) -> bool:
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
