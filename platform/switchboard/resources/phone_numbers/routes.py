"""Endpoints of phone numbers."""

from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import (
    Conflict,
    DestinationNotAllowed,
    InsufficientBalance,
    InvalidState,
    ProviderFailed,
)
from switchboard.foundation.web.paging import paginate
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.phone_numbers import entering, purchases
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.queries import select_phone_numbers
from switchboard.resources.phone_numbers.schemas import (
    AvailableNumberOut,
    AvailableNumbers,
    EnteredNumbers,
    NumberSearch,
    PhoneNumberBuy,
    PhoneNumberOut,
    PhoneNumbersImport,
    PhoneNumberUpdate,
)

blueprint = ApiBlueprint(
    "phone_numbers", __name__, tags={"phone-numbers": "Search, buy, configure, and release phone numbers."}
)


@blueprint.get("/v1/phone-numbers")
@endpoint(scope="phone-numbers:read")
async def list_phone_numbers(session: ReadSession, query: PageQuery) -> Page[PhoneNumberOut]:
    """List phone numbers.

    The list shows active numbers, including those with a scheduled release.
    """
    return await paginate(session, select_phone_numbers(session), PhoneNumberOut.from_row, query)


@blueprint.post("/v1/phone-numbers")
@endpoint(
    scope="phone-numbers:write",
    status=201,
    errors=[Conflict, InsufficientBalance, ProviderFailed],
)
async def buy_phone_number(principal: Principal, data: PhoneNumberBuy, buyer: purchases.NumberBuyer) -> PhoneNumberOut:
    """Buy a phone number.

    It is bought from the organization's first carrier and routed to this server; `inbound_agent_id` answers its calls.
    """
    bought = await buyer.buy_number(principal.organization_id, data, actor=principal.actor)
    return PhoneNumberOut.from_row(bought)


@blueprint.post("/v1/phone-numbers/search")
@endpoint(scope="phone-numbers:read", errors=[ProviderFailed])
async def search_phone_numbers(principal: Principal, data: NumberSearch, providers: Providers) -> AvailableNumbers:
    """Search phone numbers to buy."""
    found = await purchases.search_available_numbers(providers, principal.organization_id, data)
    return AvailableNumbers(items=[AvailableNumberOut.from_number(number) for number in found])


@blueprint.post("/v1/phone-numbers/enter")
@endpoint(
    scope="phone-numbers:write",
    status=201,
    errors=[Conflict, InvalidState],
)
async def enter_phone_numbers(session: WriteSession, data: PhoneNumbersImport, registry: Registry) -> EnteredNumbers:
    """Enter phone numbers that a trunk has.

    They belong to the organization's first carrier that sells no numbers, such as its SIP trunks, and cost nothing
    here. An addition.
    """
    entered = await entering.enter_numbers(session, registry, data)
    return EnteredNumbers(items=[PhoneNumberOut.from_row(number) for number in entered])


@blueprint.put("/v1/phone-numbers/<uuid:number_id>")
@endpoint(scope="phone-numbers:write", errors=[DestinationNotAllowed])
async def update_phone_number(
    session: WriteSession, number_id: UUID, data: PhoneNumberUpdate, updater: numbers.PhoneNumberUpdater
) -> PhoneNumberOut:
    """Update a phone number.

    Only the given fields change; null clears one.
    """
    number, secret = await updater.update(session, number_id, data)
    return PhoneNumberOut.from_row(number, new_secret=secret)


@blueprint.delete("/v1/phone-numbers/<uuid:number_id>")
@endpoint(scope="phone-numbers:write", errors=[InvalidState])
async def release_phone_number(session: WriteSession, number_id: UUID) -> PhoneNumberOut:
    """Release a phone number.

    It works until the end of its billing period (a month, counted from the purchase), and is then released. A number
    that was entered has no billing period, and is released at once.
    """
    return PhoneNumberOut.from_row(await numbers.schedule_release(session, number_id))
