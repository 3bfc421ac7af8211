"""Private data: detectors that find one kind of it in what people say and write."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text in which private data is searched.

    Spoken numbers in `text` are digits already: "four one double five" is `4155`. `language` is BCP 47 (`en-US`).
    `question` is what the other party said last, empty if that is not known.
    """

    text: str
    language: str = "en-US"
    question: str = ""


class PrivateDataDetector(ABC):
    """Finds one kind of private data.

    `name` is the kind as agents name it (`card_number`) and, with spaces, the placeholder (`[card number]`). `title`
    describes it to people.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def find(self, spoken: SpokenText) -> Iterable[tuple[int, int]]:
        """Return the start and end of each occurrence in `spoken.text`.

        Called in the event loop for every transcript, interim ones too: return within a millisecond or two. If it
        raises, the whole text is redacted.
        """
