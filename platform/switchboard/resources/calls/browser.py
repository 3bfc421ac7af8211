"""Calls from a browser.

A call to one of the organization's own numbers is answered like any inbound call. Any other number is dialed with one
of the organization's numbers as the caller id. `agent:<id>` asks for an agent, whether it has a number or not.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from uuid import UUID

import structlog

from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.web.schemas import is_phone_number, parse_id
from switchboard.plugin_sdk import BrowserCall, ForwardCall, IncomingCall, Instruction, RejectCall
from switchboard.resources.calls import inbound
from switchboard.resources.calls.allowance import ANNOUNCEMENTS_TURN, acquire_call_allowance
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import find_call_by_carrier_id
from switchboard.resources.calls.states import FORWARDED_TIMEOUT, is_over, refuse_call, start_call
from switchboard.resources.destinations.service import find_refusal
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import find_number_of_agent, find_phone_number, list_numbers_at_carrier

logger = structlog.get_logger()
AGENT = "agent:"
NO_NUMBER = "browser"
"""Stands in for the number of a call that has none."""
BrowserCallAnswerer: TypeAlias = Callable[
    [Database, inbound.InboundCallRouter, UUID, str, BrowserCall], Awaitable[Instruction]
]
ANSWERERS: Final[dict[str, BrowserCallAnswerer]] = {}
"""Answers of other resources, by the first word of the identity that their browser tokens have. The application sets
them.
"""


async def answer_browser_call(
    database: Database, router: inbound.InboundCallRouter, organization_id: UUID, carrier: str, browser: BrowserCall
) -> Instruction:
    """Decide what becomes of the call, record it, and return the instruction for the carrier.

    Anybody with a token may call, and nobody has checked what they dial.
    """
    async with database.write_in_turn(organization_id, ANNOUNCEMENTS_TURN) as session:
        own = await find_phone_number(session, browser.to_number)
        callers = {number.phone_number: number for number in await list_numbers_at_carrier(session, carrier)}
        caller = callers.get(browser.from_number)
        agent_id = parse_id(browser.to_number.removeprefix(AGENT)) if browser.to_number.startswith(AGENT) else None
        if agent_id is not None:
            own = await find_number_of_agent(session, agent_id)
        elif own is None:
            return await _answer_outbound(session, carrier, browser, caller)
    to_number = own.phone_number if own else NO_NUMBER
    from_number = caller.phone_number if caller else to_number
    return await router.answer_inbound_call(
        organization_id,
        carrier,
        IncomingCall(browser.carrier_call_id, from_number, to_number),
        agent_id=agent_id,
    )


async def _answer_outbound(
    session: WriteSession, carrier: str, browser: BrowserCall, caller: PhoneNumber | None
) -> Instruction:
    if caller is None or not is_phone_number(browser.to_number):
        logger.warning(
            "browser call refused: it must dial a phone number, with one of the organization's own as the caller id"
        )
        return RejectCall()
    call = await find_call_by_carrier_id(session, carrier, browser.carrier_call_id)
    if call is None:
        call = await _create_call(session, carrier, browser, caller)
    return RejectCall() if is_over(call) else ForwardCall(browser.to_number, caller_id=call.from_number)


async def _create_call(session: WriteSession, carrier: str, browser: BrowserCall, caller: PhoneNumber) -> Call:
    allowance = await acquire_call_allowance(session)
    call = Call(
        organization_id=session.organization_id,
        phone_number_id=caller.id,
        direction="outbound",
        status="ringing",
        from_number=caller.phone_number,
        to_number=browser.to_number,
        carrier=carrier,
        carrier_call_id=browser.carrier_call_id,
        served_by={"telephony": carrier},
        watch_at=now() + FORWARDED_TIMEOUT,
    )
    session.add(call)
    refusal = await find_refusal(session, call.to_number) or allowance.find_refusal()
    refusal = refusal or await inbound.find_balance_refusal(session, call.id)
    if refusal is not None:
        await refuse_call(session, call, refusal)
    else:
        await start_call(session, call)
        call.watch_at = now() + FORWARDED_TIMEOUT
        await allowance.count_outbound_call(session)
    return call
