"""Transfers of a call.

A blind transfer connects the caller at once. A warm transfer first calls the target, tells it what the call is about,
and asks it to press a key, while the caller stays with the agent.
"""

import asyncio
from typing import Final

import structlog

from switchboard.engine.conversation.call import LiveCall, SpeechRenderer, TransferTargetEvent
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.languages import get_base_language

logger = structlog.get_logger()
INTRODUCTION_SECONDS: Final = 120.0
"""Limit for calling the target, its answer, the introduction, and the key. Carriers give up earlier; this is for one
that reports nothing."""
CARRIER_SECONDS: Final = 5.0
ACCEPT_QUESTIONS: Final = {
    "de": "Drücken Sie die Eins, um den Anruf anzunehmen.",
    "en": "Press one to accept the call.",
    "es": "Pulse uno para aceptar la llamada.",
    "fr": "Appuyez sur un pour accepter l'appel.",
    "it": "Prema uno per accettare la chiamata.",
    "nl": "Druk op een om het gesprek aan te nemen.",
    "pt": "Prima um para aceitar a chamada.",
}


def get_accept_prompt(language: str) -> str:
    """Return the sentence that asks a target to accept, in a language (BCP 47) or in English."""
    return ACCEPT_QUESTIONS.get(get_base_language(language), ACCEPT_QUESTIONS["en"])


class Transfer:
    """The transfers of one call, one at a time.

    `connecting_to` is the number while the caller is being connected to it. `render` speaks the introduction for a
    carrier that cannot.
    """

    def __init__(self, call: LiveCall, render: SpeechRenderer) -> None:
        self.in_progress = False
        self.connecting_to: str | None = None
        self._call = call
        self._leg = call.leg
        self._render = render
        self._target: str | None = None
        self._events: asyncio.Queue[TransferTargetEvent] = asyncio.Queue()
        self._attempted = asyncio.Event()

    async def execute(self, to_number: str, introduction: str = "") -> None:
        """Transfer the call and return once it has left us; with an `introduction` it is a warm transfer.

        Raises `ProviderError` if the call stays here; the target has been released by then.
        """
        self.in_progress = True
        try:
            if introduction:
                await self._introduce(to_number, introduction)
            self.connecting_to = to_number
            await self._connect(to_number)
        except ProviderError:
            self.in_progress, self.connecting_to = False, None
            await self.release_target()
            raise
        finally:
            self._attempted.set()

    def handle_event(self, event: TransferTargetEvent) -> None:
        """Handle a carrier event about a transfer target."""
        self._events.put_nowait(event)

    async def wait_until_attempted(self) -> None:
        """Wait until the carrier has reported the outcome for a caller whose leg closed while being connected."""
        try:
            async with asyncio.timeout(CARRIER_SECONDS):
                await self._attempted.wait()
        except TimeoutError:
            logger.warning("carrier did not report whether the transfer succeeded")

    async def release_target(self) -> None:
        """Hang up a target that waits or is still being called."""
        target, self._target = self._target, None
        if target is None:
            return
        try:
            async with asyncio.timeout(CARRIER_SECONDS):
                await self._leg.hang_up_target(target)
        except (ProviderError, TimeoutError) as error:
            logger.warning("transfer target was not hung up", error=str(error))

    async def _introduce(self, to_number: str, introduction: str) -> None:
        language = self._call.agent.settings.stt_language
        self._target = await self._leg.introduce(to_number, introduction, language, self._render)
        try:
            async with asyncio.timeout(INTRODUCTION_SECONDS):
                # Events may arrive before the target's id is known, or refer to a previous target.
                while (event := await self._events.get()).target_call_id != self._target:
                    pass
        except TimeoutError:
            raise ProviderError("nobody answered") from None
        if event.outcome is not None:
            self._target = None
            answered = event.outcome == "completed"
            raise ProviderError(
                "they did not accept the call" if answered else f"they did not answer ({event.outcome})"
            )

    async def _connect(self, to_number: str) -> None:
        target, self._target = self._target, None
        if target is None:
            await self._leg.transfer(to_number)
            return
        try:
            await self._leg.connect(target)
        except ProviderError:
            self._target = target
            raise
