"""Messages from the carrier's socket: audio, marks and keys, handed to the parts of the call."""

import structlog

from switchboard.engine.conversation.call import EndedReason, SessionContext
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.machine.dialog import MachineDialog
from switchboard.engine.conversation.speech.noise_suppression import NoiseSuppressor
from switchboard.engine.conversation.speech.rnnoise import RNNoiseMissing
from switchboard.engine.conversation.turn_taking import TurnTaking
from switchboard.plugin_sdk import DigitPressed, Frame, MarkReached, MediaStopped, ProviderError

logger = structlog.get_logger()


class CarrierInput:
    """Reader of one media socket."""

    def __init__(
        self, context: SessionContext, turns: TurnTaking, machine: MachineDialog, lifetime: CallLifetime
    ) -> None:
        self._socket = context.socket
        self._call = context.call
        self._clock = context.clock
        self._turns = turns
        self._machine = machine
        self._playout = turns.speech_output.playout
        self._lifetime = lifetime
        self._suppressor = self._create_suppressor(context)

    def _create_suppressor(self, context: SessionContext) -> NoiseSuppressor | None:
        if self._call.agent.noise_suppression == "off":
            return None
        try:
            return NoiseSuppressor(context.encoding, context.clock, self._turns.speech_input.add_audio)
        except RNNoiseMissing as error:
            logger.warning("call without noise suppression", call_id=str(self._call.call_id), reason=str(error))
            return None

    async def run(self) -> None:
        """Read until the carrier closes the socket, which ends the call."""
        if self._suppressor is not None:
            self._lifetime.start(self._suppressor.run)
        dropped = 0
        while (message := await self._socket.receive()) is not None:
            try:
                self._handle_message(message)
            except ValueError:
                dropped += 1
                if dropped == 1:
                    logger.warning("carrier message not understood", call_id=str(self._call.call_id))
        if self._call.codec.announces_end:
            self._lifetime.fail(ProviderError("the carrier has lost the call"))
        else:
            self._lifetime.end(EndedReason.CALLER_HUNG_UP)

    def _handle_message(self, message: Frame) -> None:
        event = self._call.codec.decode(message)
        if isinstance(event, bytes):
            (self._suppressor or self._turns.speech_input).add_audio(event)
            self._machine.add_audio(event)
            self._playout.mix_caller_audio(event, self._clock())
        elif isinstance(event, MarkReached):
            self._playout.handle_mark(event.name)
        elif isinstance(event, DigitPressed):
            self._turns.handle_digit(event.digit)
        elif isinstance(event, MediaStopped):
            self._lifetime.end(EndedReason.CALLER_HUNG_UP)
