"""A pseudo-language: every message of the catalogs in brackets, so that a text that is no message shows."""

from gettext import NullTranslations

from switchboard.apps.dashboard.catalog_files import build_plugin_template
from switchboard.foundation.languages import MessageCatalog

from tests.languages.catalogs import build_template, list_translated_plugins, load_plugins

OPEN, CLOSE = "⟦", "⟧"


class PseudoTranslations(NullTranslations):
    """Translations that put each known message in brackets. `known` has pairs of context and singular."""

    def __init__(self, known: frozenset[tuple[str | None, str]]) -> None:
        super().__init__()
        self._known = known

    def gettext(self, message: str) -> str:
        return f"{OPEN}{message}{CLOSE}" if (None, message) in self._known else message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"{OPEN}{msgid1 if n == 1 else msgid2}{CLOSE}" if (None, msgid1) in self._known else msgid1

    def pgettext(self, context: str, message: str) -> str:
        return f"{OPEN}{message}{CLOSE}" if (context, message) in self._known else message

    def npgettext(self, context: str, msgid1: str, msgid2: str, n: int) -> str:
        return f"{OPEN}{msgid1 if n == 1 else msgid2}{CLOSE}" if (context, msgid1) in self._known else msgid1


def build_pseudo_catalog() -> MessageCatalog:
    """Return a catalog in which every message is in brackets, those of scripts and of built-in plugins too."""
    registry, own = load_plugins(), build_template()
    templates = [own, *(build_plugin_template(registry, plugin) for plugin in list_translated_plugins(registry))]
    known = frozenset(
        (message.context, message.id if isinstance(message.id, str) else message.id[0])
        for template in templates
        for message in template
        if message.id
    )
    translations = PseudoTranslations(known)
    texts = [
        message.id
        for message in own
        if isinstance(message.id, str) and message.id and any(file.endswith(".js") for file, _ in message.locations)
    ]
    return MessageCatalog(translations, {text: translations.gettext(text) for text in texts})
