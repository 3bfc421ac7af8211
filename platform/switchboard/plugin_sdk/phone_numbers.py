"""Phone numbers at a carrier."""

from dataclasses import dataclass
from typing import Literal

NumberType = Literal["local", "mobile", "toll_free", "national"]


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
