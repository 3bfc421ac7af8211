"""Every message has a translation."""

import pytest

from tests.languages.test_catalogs import TRANSLATED, iterate_translations, read_catalog


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_message_is_translated(language: str) -> None:
    missing = [
        english[0]
        for message, english, translated in iterate_translations(read_catalog(language))
        if message.fuzzy or not all(translated)
    ]
    assert not missing, f"{len(missing)} messages without a finished translation:\n" + "\n".join(missing)
