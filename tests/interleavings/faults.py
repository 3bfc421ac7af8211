"""Faults: which of them a seed has, and the step before which each happens."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.fixtures.virtual_clock import CLOCK
from tests.interleavings.world import World

KINDS: Final = 2
MOST_FAULTS: Final = 5
LONGEST_SECONDS: Final = 30.0
PROMOTION_SECONDS: Final = 15.0
"""The longest time without a server that takes connections."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of a world. `restart` starts a process again; `victims` are the names of those that faults meet, and
    `stalled` of those that may stand still for longer than their lease lasts.
    """

    world: World
    restart: Callable[[str], None]
    victims: Sequence[str]
    stalled: Sequence[str]

    def plan(self, choices: random.Random, *, last_step: int) -> None:
        """Plan some faults, of two kinds, at any steps up to the last: seeds with few kinds go deeper into each."""
        commits = self.lose_answer, self.lose_request
        all_kinds = self.crash, self.crash_at_request, *commits, self.stall, self.promote, self.freeze_redis
        kinds, planned = choices.sample(all_kinds, KINDS), list[tuple[int, Callable[[], None]]]()
        for _ in range(choices.randint(0, MOST_FAULTS)):
            kind, step = choices.choice(kinds), choices.randint(1, last_step)
            planned.append((step, partial(kind, choices.random(), choices.random())))
        self.world.scheduler.faults.extend(sorted(planned, key=lambda fault: fault[0]))

    def crash(self, victim: float, share: float) -> None:
        """Kill a process, and start another one in its place."""
        name = self._choose(self.victims, victim)
        process = self.world.processes[name]
        if process.gate.is_dead:
            return
        self._note(name, "crashes")
        self.world.lost += 1
        process.crash()

        async def restart() -> None:
            await process.wait()
            await asyncio.sleep(share * LONGEST_SECONDS)
            self.restart(name)

        self.world.start(restart())

    def crash_at_request(self, victim: float, share: float) -> None:
        """Kill a process as it asks the carrier for something next."""
        gate = self.world.processes[self._choose(self.victims, victim)].gate
        gate.request_fault = partial(self.crash, victim, share)

    def lose_answer(self, victim: float, _share: float) -> None:
        """Break the connection of a process's next commit before its answer."""
        self.world.processes[self._choose(self.victims, victim)].gate.loses_answer = True

    def lose_request(self, victim: float, _share: float) -> None:
        """Break the connection of a process's next commit before the commit."""
        self.world.processes[self._choose(self.victims, victim)].gate.loses_request = True

    def stall(self, victim: float, share: float) -> None:
        """Let a process's statements and answers wait."""
        name = self._choose(self.stalled, victim)
        self._note(name, "stands still")
        self.world.lost += 1
        until = self.world.processes[name].gate.stalled_until = CLOCK.read() + share * LONGEST_SECONDS
        timer = asyncio.get_running_loop().call_at(until, lambda: None)  # so that time can pass until then
        self.world.timers.append(timer)

    def promote(self, victim: float, share: float) -> None:
        """Break all connections, and let nobody connect for a while, as when a standby takes over, in half of the cases
        behind a pooler.
        """
        self._note("postgres", "fails over")
        gates = self.world.installation.gates.values()
        for gate in gates:
            gate.break_connections(is_reported=victim < 0.5)
            gate.is_away = True

        seconds = share * PROMOTION_SECONDS
        self.world.longest_outage = max(self.world.longest_outage, seconds)

        async def take_over() -> None:
            await asyncio.sleep(seconds)
            for gate in gates:
                gate.is_away = False

        self.world.start(take_over())

    def freeze_redis(self, _victim: float, share: float) -> None:
        """Lose the wake-ups of a while."""
        self.world.scheduler.note("redis", "* freezes")
        self.world.redis_frozen_until = CLOCK.read() + share * LONGEST_SECONDS

    def _choose(self, names: Sequence[str], share: float) -> str:
        return names[int(share * len(names))]

    def _note(self, name: str, sentence: str) -> None:
        self.world.scheduler.note(name, f"* {sentence}")
