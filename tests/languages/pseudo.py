"""A pseudo-language: every message in brackets, so that a text that is no message shows."""

from gettext import NullTranslations

from switchboard.foundation.languages import MessageCatalog

from tests.languages.catalogs import build_template

OPEN, CLOSE = "⟦", "⟧"


class PseudoTranslations(NullTranslations):
    """Translations that put each message in brackets."""

    def gettext(self, message: str) -> str:
        return message if message.startswith(OPEN) else f"{OPEN}{message}{CLOSE}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def pgettext(self, context: str, message: str) -> str:
        return self.gettext(message)

    def npgettext(self, context: str, msgid1: str, msgid2: str, n: int) -> str:
        return self.ngettext(msgid1, msgid2, n)


def build_pseudo_catalog() -> MessageCatalog:
    """Return a catalog in which every message is in brackets, those of scripts too."""
    translations = PseudoTranslations()
    texts = [
        message.id
        for message in build_template()
        if isinstance(message.id, str) and message.id and any(file.endswith(".js") for file, _ in message.locations)
    ]
    return MessageCatalog(translations, {text: translations.gettext(text) for text in texts})
