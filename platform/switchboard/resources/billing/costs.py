"""What calls, texts and the rest cost, from their usage and the organization's prices."""

import math
from collections.abc import Sequence
from decimal import Decimal

from switchboard.engine.conversation.call import CallUsage
from switchboard.plugin_sdk import ModelUsage
from switchboard.resources.identity.policy import Prices

MILLIONTH = Decimal("0.000001")


def calculate_call_costs(prices: Prices, usage: CallUsage, *, duration_seconds: float) -> dict[str, Decimal]:
    """US dollars by part: `carriage` (each minute begun), `speech_to_text`, `text_to_speech`, `model`, `embedding`."""
    parts = {
        "carriage": Decimal(str(prices.call_minute)) * math.ceil(duration_seconds / 60),
        "speech_to_text": Decimal(str(prices.transcription_minute)) * Decimal(str(usage.speech_to_text_seconds)) / 60,
        "text_to_speech": Decimal(str(prices.speech_1000_characters)) * usage.text_to_speech_characters / 1000,
        "model": calculate_model_cost(prices, usage.models),
        "embedding": calculate_embedding_cost(prices, usage.embeddings),
    }
    return {name: amount.quantize(MILLIONTH) for name, amount in parts.items()}


def estimate_call_cost(prices: Prices, *, minutes: int) -> Decimal:
    """US dollars to set aside for the first so many minutes of a call: a talkative minute has these, of everything."""
    models = [ModelUsage("", input_tokens=6000 * minutes, output_tokens=500 * minutes)]
    usage = CallUsage(
        60.0 * minutes, 1000 * minutes, models, embeddings=[ModelUsage("", input_tokens=200 * minutes, output_tokens=0)]
    )
    return sum(calculate_call_costs(prices, usage, duration_seconds=60.0 * minutes).values(), start=Decimal(0))


def calculate_model_cost(prices: Prices, usage: Sequence[ModelUsage]) -> Decimal:
    """US dollars for requests to a model: its own reported cost where it reports one, else its tokens at the organization's prices."""
    return _reported_or(usage, prices.model_1000_input_tokens, prices.model_1000_output_tokens)


def calculate_embedding_cost(prices: Prices, usage: Sequence[ModelUsage]) -> Decimal:
    """The same for requests to an embedding model."""
    return _reported_or(usage, prices.embedding_1000_tokens, 0.0)


def _reported_or(usage: Sequence[ModelUsage], input_price: float, output_price: float) -> Decimal:
    cost = Decimal(0)
    for used in usage:
        if used.cost is not None:
            cost += Decimal(str(used.cost))
        else:
            cost += Decimal(str(input_price)) * used.input_tokens / 1000
            cost += Decimal(str(output_price)) * used.output_tokens / 1000
    return cost.quantize(MILLIONTH)


def calculate_text_cost(prices: Prices, segments: int) -> Decimal:
    """US dollars for a text that a carrier has taken."""
    return (Decimal(str(prices.text_segment)) * segments).quantize(MILLIONTH)
