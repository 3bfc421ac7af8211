"""Private data: detectors that find one kind of it in what people say and write."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from switchboard.plugin_sdk.provider import Extension


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text in which private data is searched.

    Spoken numbers in `text` are digits already: "four one double five" is `4155`. `language` is BCP 47 (`en-US`).
    `question` is what the other party said last, empty if that is not known.
    """

    text: str
    language: str = "en-US"
    question: str = ""


class PrivateDataDetector(Extension, ABC):
    """Finds one kind of private data.

    `name` is the kind as agents name it (`card_number`) and, with spaces, the placeholder (`[card number]`). `title`
    describes it to people. An instance serves one conversation.
    """

    @abstractmethod
    def find(self, spoken: SpokenText) -> Iterable[tuple[int, int]]:
        """Return the start and end of each occurrence in `spoken.text`.

        Called in the event loop for every transcript, interim ones too: return within a millisecond or two. If it
        raises, or returns more places than the text has characters, the whole text is redacted.
        """


class RemotePrivateDataDetector(PrivateDataDetector):
    """Finds private data by asking a service, which takes longer than the event loop may wait for `find`.

    What `search` finds in a text is redacted in that text and in all later ones of the conversation. `find` may add
    what needs no service.
    """

    def find(self, spoken: SpokenText) -> Iterable[tuple[int, int]]:
        """Find nothing without the service."""
        return ()

    @abstractmethod
    async def search(self, spoken: SpokenText) -> Iterable[tuple[int, int]]:
        """Return the start and end of each occurrence in `spoken.text`.

        Called for every transcript, interim ones too, for the agent's words, for results of tools, and for text
        messages. The platform waits 200 milliseconds; the text goes on without the result if none has come, or if this
        raises, and the service is left alone for five seconds. Raises `ProviderError`.
        """
