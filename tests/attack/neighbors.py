"""Costly requests of one organization, and how its neighbor fares beside them; `bench/neighbors.py` measures it."""

import asyncio
import time

from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.attack.visitors import wait_for_end

BUSY = "+15550100020"
"""Number of a person whose phone is busy, so that the calls end at once."""
AT_ONCE = 60
KEYS = 20_000
"""Keys of a body that is refused, which takes a server a while to read and to judge."""
REQUESTS, PAUSE_SECONDS = 40, 0.05
"""Requests of the neighbor, and the pause between two of them."""
MOST_SECONDS = 10.0
"""A request of the neighbor that takes longer waits for the others; on a busy machine they take a second."""


async def attack_neighbor(scene: Scene, result: AttackResult) -> None:
    """Start calls, send large bodies, search, and export at once, while the victim asks for its agents."""
    attacker, victim = scene.stranger, scene.victim
    call = {"to_number": BUSY, **{name: attacker.find_id(name) for name in ("agent_id", "from_number_id")}}
    unknown = {f"field{number}": 1 for number in range(KEYS)}
    search = {"query": " ".join(f"(a+)+{number}" for number in range(50)), "top_k": 20}
    requests: list[tuple[str, str, object]] = [
        *[("POST", "/v1/calls", call)] * AT_ONCE,
        *[("POST", "/v1/campaigns", unknown)] * (AT_ONCE // 6),
        *[("POST", "/v1/knowledge-bases/search", search)] * (AT_ONCE // 6),
        *[("GET", "/v1/exports/calls", None)] * (AT_ONCE // 6),
    ]
    costly = asyncio.gather(*(attacker.api.send(*request, wait=False) for request in requests))
    answers, seconds = [], []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        answers.append((await victim.api.get("/v1/agents")).status)
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE_SECONDS)
    await costly
    result.check(set(answers) == {200}, "GET /v1/agents beside costly requests", answers)
    result.check(max(seconds) < MOST_SECONDS, "time of GET /v1/agents beside costly requests", f"{max(seconds):.1f} s")
    await wait_for_end(attacker)
