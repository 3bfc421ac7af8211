"""What a call costs, from its usage and the organization's prices."""

import math
from decimal import Decimal

from switchboard.conversation.call import CallUsage
from switchboard.identity.policy import Prices

MILLIONTH = Decimal("0.000001")


def call_costs(prices: Prices, usage: CallUsage, *, duration_seconds: float) -> dict[str, Decimal]:
    """US dollars by part: `carriage` (each minute begun), `speech_to_text`, `text_to_speech`, `model`.

    A model's own reported cost counts where it reports one, else its tokens at the organization's prices.
    """
    model = Decimal(0)
    for used in usage.models:
        if used.cost is not None:
            model += Decimal(str(used.cost))
        else:
            model += Decimal(str(prices.model_1000_input_tokens)) * used.input_tokens / 1000
            model += Decimal(str(prices.model_1000_output_tokens)) * used.output_tokens / 1000
    parts = {
        "carriage": Decimal(str(prices.call_minute)) * math.ceil(duration_seconds / 60),
        "speech_to_text": Decimal(str(prices.transcription_minute)) * Decimal(str(usage.speech_to_text_seconds)) / 60,
        "text_to_speech": Decimal(str(prices.speech_1000_characters)) * usage.text_to_speech_characters / 1000,
        "model": model,
    }
    return {name: amount.quantize(MILLIONTH) for name, amount in parts.items()}
