"""Phone numbers at a carrier."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

NumberType = Literal["local", "mobile", "toll_free", "national"]
PREFERRED: Final[tuple[NumberType, ...]] = ("local", "mobile", "national", "toll_free")


@dataclass(frozen=True, slots=True)
class AvailableNumber:
    """A phone number that can be bought. Costs are in US dollars, monthly and one-time."""

    phone_number: str
    friendly_name: str
    country: str
    region: str | None = None
    locality: str | None = None
    postal_code: str | None = None
    number_type: NumberType = "local"
    voice: bool = True
    sms: bool = True
    mms: bool = False
    monthly_cost: float = 0.0
    setup_cost: float = 0.0


@dataclass(frozen=True, slots=True)
class BoughtNumber:
    """A phone number of the organization. `carrier_number_id` is the carrier's id for it."""

    carrier_number_id: str
    phone_number: str
    sms: bool = True


async def search_by_type(
    area_code: str | None, limit: int, search: Callable[[NumberType, int], Awaitable[Sequence[AvailableNumber]]]
) -> list[AvailableNumber]:
    """List local numbers first, then other types up to `limit`. `search` lists at most so many numbers of a type."""
    found: list[AvailableNumber] = []
    for number_type in PREFERRED:
        if len(found) >= limit or (area_code is not None and number_type == "toll_free"):
            break
        found += await search(number_type, limit - len(found))
    return found
