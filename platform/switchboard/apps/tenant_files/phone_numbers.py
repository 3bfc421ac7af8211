"""Phone numbers of a tenant file: those of a carrier that sells none, such as a SIP trunk."""

from collections.abc import Sequence

from pydantic import JsonValue, TypeAdapter, ValidationError

from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.foundation.database import ReadSession
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.phone_numbers.entering import list_entered_numbers
from switchboard.resources.phone_numbers.schemas import EnteredNumber

KEY = "phone_numbers"
_numbers: TypeAdapter[list[EnteredNumber]] = TypeAdapter(list[EnteredNumber])


def read_numbers(tables: object) -> tuple[list[EnteredNumber], list[tuple[str, str]]]:
    """Read the blocks `[[phone_numbers]]`; return the numbers, or the faults as pairs of key and message."""
    try:
        numbers = _numbers.validate_python(tables)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        return [], [
            (".".join([KEY, *map(str, item["loc"])]), item["msg"].removeprefix("Value error, ")) for item in faults
        ]
    seen: set[str] = set()
    faults_of_numbers = []
    for place, number in enumerate(numbers):
        if number.phone_number in seen:
            faults_of_numbers.append((f"{KEY}.{place}.phone_number", f"{number.phone_number} is listed twice"))
        seen.add(number.phone_number)
    return numbers, faults_of_numbers


def find_carrier_fault(
    numbers: Sequence[EnteredNumber], providers: Sequence[ProviderSpec], registry: Registry
) -> str | None:
    """Return a message if a file lists numbers, and none of its carriers has numbers that are entered."""
    carriers = (
        registry.find_provider_class(TelephonyProvider, spec.name)
        for spec in providers
        if spec.capability is Capability.TELEPHONY
    )
    if not numbers or any(carrier is not None and not carrier.capabilities.sells_numbers for carrier in carriers):
        return None
    return "is for carriers that sell no numbers, such as sip; numbers of other carriers are bought"


async def export_numbers(session: ReadSession, registry: Registry) -> list[JsonValue]:
    """Return the organization's entered numbers as blocks of a tenant file."""
    blocks: list[JsonValue] = []
    for number in await list_entered_numbers(session, registry):
        named = {} if number.friendly_name == number.phone_number else {"friendly_name": number.friendly_name}
        blocks.append({"phone_number": number.phone_number, **named})
    return blocks
