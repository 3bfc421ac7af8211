"""Languages of pages and e-mail: the current language, its gettext catalog, and its locale of dates and numbers
(docs/decisions/0086-languages.md).

Texts in the code are English, and are the keys of the catalogs. A text that the dashboard's own catalog lacks is looked
up in the catalogs of plugins, and stays English if those lack it too.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from gettext import NullTranslations
from importlib.resources import files
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path
from typing import Final

import structlog
from babel import Locale
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import Translations
from markupsafe import escape

LANGUAGES: Final = {"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français"}
"""The languages of the dashboard, each by its own name."""
DEFAULT_LANGUAGE: Final = "en"
CATALOGS: Final = Path(__file__).parents[1] / "apps" / "dashboard" / "translations"
PLUGIN_CATALOG: Final = "translations/{language}/LC_MESSAGES/messages.po"
"""The file of a language within a plugin's package."""

logger = structlog.get_logger()
_language: ContextVar[str] = ContextVar("language", default=DEFAULT_LANGUAGE)
_plugin_packages: dict[str, None] = {}
"""Packages of plugins, in the order in which a text is looked up in their catalogs."""


def get_language() -> str:
    """Return the language of the current request or e-mail, a key of `LANGUAGES`."""
    return _language.get()


def set_language(language: str) -> None:
    """Set the language of the current request."""
    _language.set(language)


@contextmanager
def use_language(language: str) -> Iterator[None]:
    """Set the language within the context, such as that of an e-mail's recipient."""
    before = _language.set(language)
    try:
        yield
    finally:
        _language.reset(before)


def get_display_locale() -> Locale:
    """Return the locale of dates and numbers in the current language."""
    return Locale.parse(_language.get())


@dataclass(frozen=True, slots=True)
class MessageCatalog:
    """The translations into a language: all of them for Python, and those of scripts by their English text."""

    translations: NullTranslations
    of_scripts: Mapping[str, str]


def add_plugin_catalogs(packages: Iterable[str]) -> None:
    """Look up texts that the dashboard's own catalogs lack in those of plugins' packages, in this order.

    The name of a package is empty for a plugin without one, which has no catalogs.
    """
    _plugin_packages.update((package, None) for package in packages if package)


def load_catalog(language: str) -> MessageCatalog:
    """Return the catalog of a language, with the plugins' messages below the dashboard's own."""
    return _load_catalogs(language, tuple(_plugin_packages))


@cache
def _load_catalogs(language: str, plugin_packages: tuple[str, ...]) -> MessageCatalog:
    """Load the catalogs of a language. They are compiled in memory, so that no compiled file can be out of date."""
    path = get_catalog_path(language)
    if language == DEFAULT_LANGUAGE or not path.exists():
        return MessageCatalog(NullTranslations(), {})
    own = read_catalog(path, language)
    of_scripts = {
        message.id: message.string
        for message in own
        if isinstance(message.id, str) and isinstance(message.string, str) and message.string
        if any(file.endswith(".js") for file, _ in message.locations)
    }
    translations = _compile(own)
    for package in plugin_packages:
        if (messages := _load_plugin_messages(package, language)) is not None:
            translations.add_fallback(messages)
    return MessageCatalog(translations, of_scripts)


def get_catalog_path(language: str) -> Path:
    """Return the file of the dashboard's own catalog of a language."""
    return CATALOGS / language / "LC_MESSAGES" / "dashboard.po"


def read_catalog(file: Traversable, language: str) -> Catalog:
    """Read a catalog of a language."""
    with file.open("rb") as opened:
        return read_po(opened, locale=language)


def _compile(catalog: Catalog) -> Translations:
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return Translations(compiled)


def _load_plugin_messages(package: str, language: str) -> Translations | None:
    """Load the messages of a plugin; None for a plugin without this language, or whose catalog is broken."""
    try:
        file = files(package) / PLUGIN_CATALOG.format(language=language)
        return _compile(read_catalog(file, language)) if file.is_file() else None
    except Exception as error:  # noqa: BLE001 - a plugin's file may contain anything
        logger.error("catalog of a plugin left out", package=package, language=language, error=repr(error))
        return None


def _translations() -> NullTranslations:
    return load_catalog(_language.get()).translations


def list_script_messages() -> Mapping[str, str]:
    """Return the translations of the scripts' texts into the current language, by the English text."""
    return load_catalog(_language.get()).of_scripts


def gettext(message: str, /, **values: object) -> str:
    """Return a text in the current language, with `values` in the places of `%(name)s`."""
    # The empty message is the catalog's header.
    text = _translations().gettext(message) if message else ""
    return text % values if values else text


def ngettext(singular: str, plural: str, number: int, /, **values: object) -> str:
    """Return the form of a text in the current language that a number takes, with `values` as in `gettext`."""
    text = _translations().ngettext(singular, plural, number)
    return text % values if values else text


class LazyText(str):
    """A text that a template shows in the language of the page. For anything else it is the English text, so that it
    can stand in constants, and is a message of the catalogs.
    """

    __slots__ = ()

    def __html__(self) -> str:
        return escape(gettext(str(self)))


def pgettext(context: str, message: str) -> str:
    """Return a text in the current language; the context tells apart English homonyms, such as `Open`."""
    return _translations().pgettext(context, message)


def npgettext(context: str, singular: str, plural: str, number: int) -> str:
    """Return the form of a text with a context that a number takes."""
    return _translations().npgettext(context, singular, plural, number)
