"""The catalogs of translations: complete, current, and with the placeholders of their messages."""

import re
from collections.abc import Iterator

import pytest
from babel.messages import Catalog, Message
from babel.messages.pofile import read_po
from switchboard.foundation.languages import DEFAULT_LANGUAGE, LANGUAGES

from tests.languages.catalogs import build_template, get_path, update_catalog

TRANSLATED = sorted(set(LANGUAGES) - {DEFAULT_LANGUAGE})
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%|\{\w+[^}]*\}|</?[a-z]+[^>]*>|`[^`]+`")


@pytest.fixture(scope="module")
def template() -> Catalog:
    return build_template()


def read_catalog(language: str) -> Catalog:
    with get_path(language).open("rb") as file:
        return read_po(file, locale=language)


def iterate_translations(catalog: Catalog) -> Iterator[tuple[Message, list[str], list[str]]]:
    """Yield each message with its English forms and its translated forms."""
    for message in catalog:
        english = list(message.id) if isinstance(message.id, tuple | list) else [message.id]
        forms = message.string if isinstance(message.string, tuple | list) else [message.string]
        translated = [str(form or "") for form in forms]
        if english != [""]:
            yield message, english, translated


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalog_has_the_messages_of_the_code(language: str, template: Catalog) -> None:
    assert get_path(language).read_bytes() == update_catalog(language, template), "run `make catalogs`"


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_translation_keeps_placeholders_and_markup(language: str) -> None:
    broken = []
    for _, english, translated in iterate_translations(read_catalog(language)):
        known = {frozenset(PLACEHOLDER.findall(form)) for form in english}
        broken += [form for form in translated if form and frozenset(PLACEHOLDER.findall(form)) not in known]
    assert not broken, "\n".join(broken)
