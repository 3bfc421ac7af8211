"""Benchmark of what a model's answer costs this process: CPU time per answer, over OpenAI's wire format directly, and
over LiteLLM for the same server. They take turns, so that both suffer alike from the machine's other work.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator

from pydantic import SecretStr
from switchboard.plugin_sdk import ChatRequest, Message
from switchboard_llm import MODELS
from switchboard_llm.litellm_model import LiteLLMModel
from switchboard_llm.vendor_api import create_vendor_class
from switchboard_llm.vendor_model import ModelSettings, VendorModel
from switchboard_llm.vendors import VENDORS

TOKENS, ANSWERS, ROUNDS, WARM = 60, 40, 7, 5
TURNS = tuple(Message("user" if place % 2 else "assistant", "A sentence of the conversation.") for place in range(20))
REQUEST = ChatRequest((Message("system", "Be brief. " * 100), *TURNS), model="gpt-4o-mini")


async def measure(model: VendorModel, answers: int) -> float:
    """Return the CPU time per answer in milliseconds."""
    began = time.process_time()
    for _ in range(answers):
        events = [event async for event in model.chat(REQUEST)]
        if len(events) <= TOKENS:
            raise RuntimeError("an answer is incomplete")
    return (time.process_time() - began) * 1000 / answers


async def start_server() -> tuple[asyncio.subprocess.Process, str]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.models_server", str(TOKENS), stdout=subprocess.PIPE
    )
    if server.stdout is None:
        raise RuntimeError("the server has no output")
    return server, (await server.stdout.readline()).decode().strip()


async def compare() -> AsyncIterator[tuple[float, float]]:
    """Yield the CPU time per answer of both ways, round by round."""
    server, url = await start_server()
    settings = ModelSettings(api_key=SecretStr("key"), base_url=f"{url}/v1")
    openai = next(vendor for vendor in VENDORS if vendor.name == "openai")
    direct = next(kind for kind in MODELS if kind.name == "openai")(settings)
    litellm = create_vendor_class(LiteLLMModel, openai, "Model", "chat")(settings)
    try:
        for model in (direct, litellm):
            await model.open()
            await measure(model, WARM)
        for _ in range(ROUNDS):
            yield await measure(direct, ANSWERS), await measure(litellm, ANSWERS)
    finally:
        await direct.close()
        server.kill()
        await server.wait()


async def run_rounds() -> None:
    rounds = []
    print(f"CPU ms per answer of {TOKENS} tokens | direct | LiteLLM")
    async for direct, litellm in compare():
        rounds.append(litellm / direct)
        print(f"                                 | {direct:6.2f} | {litellm:7.2f}", flush=True)
    print(f"LiteLLM takes {statistics.median(rounds):.1f} times as much (median)")


def run() -> None:
    """Print the rounds and the ratio."""
    asyncio.run(run_rounds())
