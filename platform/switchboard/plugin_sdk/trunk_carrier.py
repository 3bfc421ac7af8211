"""Carriers over the operator's own trunks: each trunk can be checked, and a call through a trunk measured."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """Result of the check of one part of a provider, such as a trunk or a gateway.

    `message` says what happened, and what to fix if the part does not work.
    """

    name: str
    works: bool
    message: str


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """Result of a test call.

    `trunk` took the call, and is empty if none did. `message` says what was measured, or why there was no call.
    `advice` says what to fix; it is empty for a call with sound in both directions.
    """

    trunk: str
    message: str
    advice: str


class TrunkCarrier(ABC):
    """A carrier, beside `TelephonyProvider`, over trunks that the operator has set up."""

    @abstractmethod
    async def check_parts(self) -> Sequence[CheckedPart]:
        """Check each trunk by itself, without a call. Raises `ProviderError` if none can be checked.

        `check` raises if one of them does not work.
        """

    @abstractmethod
    async def measure_call(self, from_number: str, to_number: str) -> MeasuredCall:
        """Place a call over the trunks, as the platform does, and measure the sound of both directions.

        Whoever answers hears a tone for some seconds, and should speak or be an echo. Nothing of the platform takes
        part. Both numbers are in E.164. Raises `ProviderError` if no call can be ordered.
        """
