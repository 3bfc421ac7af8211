"""Cost of a provider in a process of its own: processor time for each token and piece of audio, and latency.

The providers of `bench/provider_server.py` need no time of their own, so what is measured is the platform's part: the
containment, and with `own` the messages. Processor time is that of both processes.
"""

import resource
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import uvloop
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.plugin_sdk import ChatRequest, LLMProvider, Message, Provider, ProviderSettings, SpeechRequest
from switchboard.plugin_sdk.registry import Capability, Registry

from bench import provider_server
from bench.provider_server import CHUNKS, TOKENS

ROUNDS = 300
CHAT = ChatRequest((Message("system", "You are a helpful agent. " * 40), Message("user", "Hello")))


def run() -> None:
    """Measure both kinds of process, and print a table."""
    print(f"{'process':8} {'work':6} {'open':>9} {'first item, p50':>16} {'p99':>9} {'CPU per item':>13}")
    for process in ("shared", "own"):
        for capability, items in ((Capability.LLM, TOKENS), (Capability.TEXT_TO_SPEECH, CHUNKS)):
            before = _read_processor_seconds()
            opened, firsts = uvloop.run(_measure(capability, process))
            # The child's time counts once it has ended; its start is not part of an item's cost.
            used = _read_processor_seconds() - before - (_start_seconds(capability) if process == "own" else 0.0)
            ordered = sorted(firsts)
            print(
                f"{process:8} {'token' if capability is Capability.LLM else 'chunk':6} {opened * 1e3:6.0f} ms "
                f"{statistics.median(ordered) * 1e6:13.0f} µs {ordered[int(0.99 * len(ordered))] * 1e6:6.0f} µs "
                f"{used / (ROUNDS * items) * 1e6:10.1f} µs"
            )


def _start_seconds(capability: Capability) -> float:
    """Return the processor time of a process that is started and stopped."""
    before = _read_processor_seconds()
    uvloop.run(_measure(capability, "own", rounds=1))
    return _read_processor_seconds() - before


def _read_processor_seconds() -> float:
    usages = [resource.getrusage(part) for part in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


async def _measure(capability: Capability, process: str, rounds: int = ROUNDS) -> tuple[float, list[float]]:
    """Return the seconds of opening the provider, and those of each request until its first item."""
    registry = Registry()
    registry.add("instant", provider_server)
    with tempfile.TemporaryDirectory() as folder:
        provider = ProviderFactory(registry, Path(folder)).create(capability, "instant", {}, process=process)
        began = time.perf_counter()
        await provider.open()
        opened = time.perf_counter() - began
        work = _choose_work(provider)
        firsts = []
        for _ in range(rounds):
            began, first = time.perf_counter(), None
            async for _item in work():
                first = first or time.perf_counter() - began
            firsts.append(first or 0.0)
        await provider.close()
    return opened, firsts


def _choose_work(provider: Provider[ProviderSettings]) -> Callable[[], AsyncIterator[Any]]:
    if isinstance(provider, LLMProvider):
        return lambda: provider.chat(CHAT)
    speech: Any = provider
    return lambda: speech.synthesize(SpeechRequest("A sentence of some length. " * 4))
