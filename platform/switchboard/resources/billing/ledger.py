"""Costs, and the ledger: each cost and top-up is an entry, and the balance is their sum. A prepaid organization's money
is held before it is spent, so it cannot go into debt.

All changes of an organization's balance happen under the lock of its account row, in the transaction of what is paid
for.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from switchboard.engine.conversation.call import CallUsage
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import InsufficientBalance
from switchboard.foundation.web.paging import lock_row
from switchboard.plugin_sdk import ModelUsage
from switchboard.resources.billing import queries
from switchboard.resources.billing.models import Account, LedgerEntry, LedgerHold
from switchboard.resources.destinations.service import pause_at_limits, read_limit_counts
from switchboard.resources.identity.policy import Prices
from switchboard.resources.identity.service import get_policy

Spending = Literal["call", "analysis", "text", "number", "embedding", "simulation"]


async def hold_funds(session: WriteSession, reference: UUID, amount: Decimal) -> None:
    """Hold `amount` in total for something that starts or continues. Raises `InsufficientBalance`.

    Does nothing for a postpaid organization.
    """
    if (await get_policy(session, session.organization_id)).billing_mode != "prepaid":
        return
    account = await _lock_account(session)
    others = (await read_limit_counts(session)).held - await queries.read_hold(session, reference)
    if account.balance - others < amount:
        raise InsufficientBalance
    hold = LedgerHold(id=reference, organization_id=account.organization_id, amount=amount)
    await queries.save_hold(session, hold)


async def hold_call_minutes(session: WriteSession, call_id: UUID, minutes: int) -> None:
    """Hold the estimated cost of the first minutes of a call. Raises `InsufficientBalance`."""
    prices = (await get_policy(session, session.organization_id)).prices
    await hold_funds(session, call_id, estimate_call_cost(prices, minutes=minutes))


async def require_solvency(session: ReadSession) -> None:
    """Refuse usage that is charged afterwards if a prepaid balance is negative. Raises `InsufficientBalance`."""
    if (await get_policy(session, session.organization_id)).billing_mode != "prepaid":
        return
    if (await get_account_balance(session))[0] < (await read_limit_counts(session)).held:
        raise InsufficientBalance


async def settle_hold(session: WriteSession, kind: Spending, reference: UUID, amount: Decimal) -> bool:
    """Release a hold and charge the actual cost; repeated calls change nothing. Return whether this call charged it."""
    account = await _lock_account(session) if amount else None
    await queries.delete_hold(session, reference)
    if account is None:
        return False
    entry = LedgerEntry(organization_id=session.organization_id, kind=kind, amount=-amount, reference=reference)
    if not await session.insert_if_new(entry):
        return False
    _charge(account, amount)
    await pause_at_limits(session, "spend_per_hour")
    return True


async def correct_charge(session: WriteSession, kind: Spending, amount: Decimal, *, note: str) -> None:
    """Charge the difference between a cost and its estimate, which is negative if the estimate was too high.

    Entries are immutable, so a correction is an entry of its own. The caller must make it once.
    """
    account = await _lock_account(session)
    session.add(LedgerEntry(organization_id=account.organization_id, kind=kind, amount=-amount, note=note))
    _charge(account, amount)


async def credit_account(session: WriteSession, amount: Decimal, *, note: str = "") -> Decimal:
    """Top up an organization, or charge it with a negative amount; return the new balance."""
    account = await _lock_account(session)
    session.add(LedgerEntry(organization_id=account.organization_id, kind="credit", amount=amount, note=note))
    _charge(account, -amount)
    return account.balance


async def get_account_balance(session: ReadSession) -> tuple[Decimal, datetime | None]:
    """Return the sum of all entries, and the time of the last one."""
    account = await session.find(Account, session.organization_id)
    return (account.balance, account.updated_at) if account else (Decimal(0), None)


def _charge(account: Account, amount: Decimal) -> None:
    """Subtract the cost of a new entry from a locked account."""
    account.balance -= amount
    account.updated_at = now()


async def _lock_account(session: WriteSession) -> Account:
    organization_id = session.organization_id
    await session.insert_if_new(Account(id=organization_id, organization_id=organization_id))
    return await lock_row(session, Account, organization_id)


# Costs of calls, text messages, and the rest, from their usage and the organization's prices.

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
    """Estimate the cost of a call's first minutes in US dollars, to hold it: a talkative minute uses every part."""
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


async def calculate_writing_cost(
    session: ReadSession, models: Sequence[ModelUsage], embeddings: Sequence[ModelUsage]
) -> Decimal:
    """Calculate the cost in US dollars of what an agent has written, at the organization's prices."""
    prices = (await get_policy(session, session.organization_id)).prices
    return calculate_model_cost(prices, models) + calculate_embedding_cost(prices, embeddings)


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
