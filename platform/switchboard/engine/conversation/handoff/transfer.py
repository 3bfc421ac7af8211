"""Transferring a call: at once, or after its target has been rung and told what it is about, while the caller stays with the agent."""

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog

from switchboard.engine.conversation.call import CarrierLeg, TransferTargetEvent
from switchboard.plugin_sdk import ProviderError

logger = structlog.get_logger()
INTRODUCTION_SECONDS: Final = 90.0
"""For the target to be rung, answer, and be told. The carrier rings for less; this is for one that says nothing."""
CARRIER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """Where the agent wants the call to go. With an `introduction` it is a warm transfer."""

    to_number: str
    introduction: str = ""


class Transfer:
    """The transfers of one call, one at a time. `leaving` is the number, once the caller is being connected to it."""

    def __init__(self, leg: CarrierLeg, language: str) -> None:
        self.under_way = False
        self.leaving: str | None = None
        self._leg = leg
        self._language = language
        self._target: str | None = None
        self._told: asyncio.Queue[TransferTargetEvent] = asyncio.Queue()
        self._connected = asyncio.Event()

    async def make(self, wish: TransferRequest) -> None:
        """Returns once the call has left us. Raises `ProviderError` where it goes on here; the target has been let go then."""
        self.under_way = True
        try:
            if wish.introduction:
                await self._introduce(wish)
            self.leaving = wish.to_number
            await self._connect(wish)
        except ProviderError:
            self.under_way, self.leaving = False, None
            await self.call_off()
            raise
        finally:
            self._connected.set()

    def told(self, told: TransferTargetEvent) -> None:
        """The carrier has told something about a target."""
        self._told.put_nowait(told)

    async def settled(self) -> None:
        """The caller has left while they were being connected: returns once the carrier has said how that went."""
        try:
            async with asyncio.timeout(CARRIER_SECONDS):
                await self._connected.wait()
        except TimeoutError:
            logger.warning("the carrier did not say whether the call was connected")

    async def call_off(self) -> None:
        """Let a target go that waits, or is still being rung."""
        target, self._target = self._target, None
        if target is None:
            return
        try:
            async with asyncio.timeout(CARRIER_SECONDS):
                await self._leg.hang_up_target(target)
        except (ProviderError, TimeoutError) as error:
            logger.warning("the target of a transfer was not let go", error=str(error))

    async def _introduce(self, wish: TransferRequest) -> None:
        self._target = await self._leg.introduce(wish.to_number, wish.introduction, self._language)
        try:
            async with asyncio.timeout(INTRODUCTION_SECONDS):
                told = await self._told_of(self._target)
        except TimeoutError:
            raise ProviderError("nobody answered") from None
        if told.outcome is not None:
            self._target = None
            raise ProviderError(
                "they hung up" if told.outcome == "completed" else f"they did not answer ({told.outcome})"
            )

    async def _told_of(self, target: str) -> TransferTargetEvent:
        """What is told of it may come before its name does, and what was told of an earlier one may still be there."""
        while (told := await self._told.get()).target_call_id != target:
            pass
        return told

    async def _connect(self, wish: TransferRequest) -> None:
        target, self._target = self._target, None
        if target is None:
            await self._leg.transfer(wish.to_number)
            return
        try:
            await self._leg.connect(target)
        except ProviderError:
            self._target = target
            raise
