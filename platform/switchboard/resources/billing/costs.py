"""Costs of calls, text messages, and the rest, from their usage and the organization's prices."""

import math
from collections.abc import Sequence
from decimal import Decimal

from switchboard.engine.conversation.call import CallUsage
from switchboard.plugin_sdk import ModelUsage
from switchboard.resources.identity.policy import Prices

MILLIONTH = Decimal("0.000001")


def calculate_call_costs(prices: Prices, usage: CallUsage, *, duration_seconds: float) -> dict[str, Decimal]:
    """Calculate a call's costs in US dollars by part.

    The parts are `carriage` (per started minute), `speech_to_text`, `text_to_speech`, `model`, `dropped_model` (answers
    of the model that nobody heard, because the caller went on), and `embedding`.
    """
    parts = {
        "carriage": Decimal(str(prices.call_minute)) * math.ceil(duration_seconds / 60),
        "speech_to_text": Decimal(str(prices.transcription_minute)) * Decimal(str(usage.speech_to_text_seconds)) / 60,
        "text_to_speech": calculate_speech_cost(prices, usage.text_to_speech_characters),
        "model": calculate_model_cost(prices, usage.models),
        "dropped_model": calculate_model_cost(prices, usage.dropped_models),
        "embedding": calculate_embedding_cost(prices, usage.embeddings),
    }
    return {name: amount.quantize(MILLIONTH) for name, amount in parts.items()}


def estimate_call_cost(prices: Prices, *, minutes: int) -> Decimal:
    """Estimate the cost in US dollars of the first minutes of a call, to hold the amount: a talkative minute uses
    every part.
    """
    models = [ModelUsage("", input_tokens=6000 * minutes, output_tokens=500 * minutes)]
    usage = CallUsage(
        60.0 * minutes, 1000 * minutes, models, embeddings=[ModelUsage("", input_tokens=200 * minutes, output_tokens=0)]
    )
    return sum(calculate_call_costs(prices, usage, duration_seconds=60.0 * minutes).values(), start=Decimal(0))


def calculate_model_cost(prices: Prices, usage: Sequence[ModelUsage]) -> Decimal:
    """Calculate the cost in US dollars of model requests: the cost that the provider reports, or else tokens at the
    organization's prices.
    """
    return _reported_or(usage, prices.model_1000_input_tokens, prices.model_1000_output_tokens)


def calculate_speech_cost(prices: Prices, characters: int) -> Decimal:
    """Calculate the cost in US dollars of speech of so many characters."""
    return (Decimal(str(prices.speech_1000_characters)) * characters / 1000).quantize(MILLIONTH)


def calculate_embedding_cost(prices: Prices, usage: Sequence[ModelUsage]) -> Decimal:
    """Calculate the cost in US dollars of embedding requests, like `calculate_model_cost`."""
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


def calculate_text_cost(prices: Prices, segments: int, *, reported: float | None = None) -> Decimal:
    """Calculate the cost in US dollars of a text message that a carrier has accepted: what the carrier reported, else
    the price of its segments.
    """
    cost = Decimal(str(prices.text_segment)) * segments if reported is None else Decimal(str(reported))
    return cost.quantize(MILLIONTH)
