"""Every message has a translation, those of the built-in plugins too."""

from pathlib import Path

import pytest
from switchboard.foundation.languages import read_catalog

from tests.languages.test_catalogs import CATALOGS, iterate_translations


@pytest.mark.parametrize(("path", "language"), CATALOGS)
def test_every_message_is_translated(path: Path, language: str) -> None:
    missing = [
        english[0]
        for message, english, translated in iterate_translations(read_catalog(path, language))
        if message.fuzzy or not all(translated)
    ]
    assert not missing, f"{len(missing)} messages without a finished translation:\n" + "\n".join(missing)
