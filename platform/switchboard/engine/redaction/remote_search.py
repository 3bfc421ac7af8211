"""Private data that services find: asked with a time limit, and remembered for the rest of the conversation."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import structlog

from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.private_data import RemotePrivateDataDetector, SpokenText

logger = structlog.get_logger()
SEARCH_SECONDS: Final = 0.2
"""Time that a text waits for its search: the caller's silence after a turn is that much longer in the worst case."""
PAUSE_SECONDS: Final = 5.0
MAX_VALUES: Final = 500


class RemoteSearch:
    """Remote detectors of one conversation, and the values that they have found.

    Values, not places: the same name comes again in the agent's answer, in a tool's result, and in the entry of the
    transcript, none of which waits for the service.
    """

    def __init__(self, detectors: Sequence[RemotePrivateDataDetector]) -> None:
        self._detectors = detectors
        self._values: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._paused_until = dict.fromkeys((detector.name for detector in detectors), 0.0)

    def __bool__(self) -> bool:
        return bool(self._detectors)

    async def search(self, spoken: SpokenText) -> None:
        """Ask every detector. If a detector has no result in time, the results of the others stand, and a metric counts
        the failure.
        """
        found = await asyncio.gather(*(self._ask(detector, spoken) for detector in self._detectors))
        for detector, spans in zip(self._detectors, found, strict=True):
            for start, end in spans:
                if (value := spoken.text[start:end].strip()) and len(self._values) < MAX_VALUES:
                    self._values.setdefault(value, detector.name)
        if any(found):
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the kind, start, and end of each occurrence of a value."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text):
                yield self._values[match[0]], match.span()

    async def _ask(self, detector: RemotePrivateDataDetector, spoken: SpokenText) -> Sequence[tuple[int, int]]:
        now = asyncio.get_running_loop().time
        if now() < self._paused_until[detector.name]:
            metrics.private_data_unsearched.labels(detector.name, "paused").inc()
            return ()
        try:
            async with asyncio.timeout(SEARCH_SECONDS):
                return _check_places(await detector.search(spoken), spoken.text)
        except TimeoutError:
            reason = "late"
        except ProviderError:  # without its message, which may quote the text
            reason = "failed"
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            reason = "failed"
            record_extension_fault("detector of private data failed", detector, "search", error)
        self._paused_until[detector.name] = now() + PAUSE_SECONDS
        metrics.private_data_unsearched.labels(detector.name, reason).inc()
        logger.warning("private data not searched by a service", detector=detector.name, reason=reason)
        return ()


def _check_places(found: Iterable[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Return the places of the text. Raises `OverflowError` for more places than the text has characters."""
    places = list(islice(found, len(text) + 1))
    if len(places) > len(text):
        raise OverflowError
    return [(start, end) for start, end in places if 0 <= start < end <= len(text)]
