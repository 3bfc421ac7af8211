"""The language of pages and e-mails: the user's, the organization's, the browser's, or English."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from gettext import NullTranslations
from uuid import UUID

import pytest
from switchboard.apps.dashboard.ui import formats
from switchboard.apps.server import app
from switchboard.foundation import languages
from switchboard.foundation.languages import LazyText, MessageCatalog, use_language
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller
from tests.fixtures.dashboard import People, Person

GERMAN = {"Your account": "Ihr Konto", "Sign in": "Anmelden", "Saved.": "Gespeichert.", "is required": "fehlt"}


class FewTranslations(NullTranslations):
    def gettext(self, message: str) -> str:
        return GERMAN.get(message, message)


@pytest.fixture(autouse=True)
def german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A German catalog of a few messages, so that no test depends on the wording of translations."""
    known = {"de": MessageCatalog(FewTranslations(), {"Copied": "Kopiert"})}
    english = MessageCatalog(NullTranslations(), {})
    monkeypatch.setattr(languages, "load_catalog", lambda language: known.get(language, english))
    with use_language("en"):
        yield


async def read_language(person: Person, accept: str = "") -> str:
    """Return the language of the account page, after checking that its text is in it."""
    person.headers["Accept-Language"] = accept
    html = (await person.get("/dashboard/account")).html
    language = html.partition('<html lang="')[2][:2]
    assert ("<h1>Ihr Konto</h1>" in html) == (language == "de")
    return language


async def test_the_user_comes_before_the_organization_and_that_before_the_browser(
    people: People, caller: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    assert await read_language(owner) == "en"
    assert await read_language(owner, "it, de-AT;q=0.9, en;q=0.5") == "de"
    assert (await owner.post("/dashboard/general/language", {"language": "fr"})).status == 303
    assert await read_language(owner, "de") == "fr"
    assert (await owner.post("/dashboard/account/language", {"language": "de"})).status == 303
    assert await read_language(owner, "es") == "de"
    assert "Gespeichert." not in (await owner.get("/dashboard/account")).html
    assert (await owner.post("/dashboard/account/language", {"language": ""})).status == 303
    assert await read_language(owner, "es") == "fr"


@pytest.mark.parametrize("page", ["account", "general"])
async def test_an_unknown_language_is_refused(people: People, caller: Caller, page: str) -> None:
    owner = await people.join(caller.organization_id)
    assert (await owner.post(f"/dashboard/{page}/language", {"language": "tlh"})).status == 422


async def test_a_notice_is_in_the_language_that_was_just_chosen(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    await owner.post("/dashboard/account/language", {"language": "de"})
    html = (await owner.get("/dashboard/account")).html
    assert "Gespeichert." in html
    assert '<script type="application/json" id="script-messages">{"Copied": "Kopiert"}</script>' in html


async def test_open_pages_have_the_language_of_the_browser(runtime: Runtime) -> None:
    anybody = Person(UUID(UNKNOWN_ID), "", app.create_app(runtime).test_client())
    anybody.headers["Accept-Language"] = "de"
    html = (await anybody.get("/dashboard/sign-in")).html
    assert '<html lang="de"' in html
    assert "<h1>Anmelden</h1>" in html


def test_numbers_money_and_dates_are_those_of_the_language() -> None:
    shown = {}
    for language in ("en", "de", "fr"):
        with use_language(language):
            amounts = (formats.dollars(Decimal("-1234.5")), formats.dollars(Decimal("0.0123")))
            shown[language] = (formats.count(1234567), *amounts)
    assert shown["en"] == ("1,234,567", "−$1,234.50", "$0.0123")
    assert shown["de"] == ("1.234.567", "−1.234,50\xa0$", "0,0123\xa0$")
    assert shown["fr"] == ("1\u202f234\u202f567", "−1\u202f234,50\xa0$US", "0,0123\xa0$US")
    moment = datetime(2026, 11, 23, 14, 5, tzinfo=UTC)
    languages.set_language("en")
    assert (formats.clock(moment), formats.weekday(moment), formats.month("2026-11")) == ("14:05", "Monday", "Nov 2026")
    languages.set_language("es")
    assert (formats.weekday(moment), formats.short_day(moment.date())) == ("lunes", "23 nov")


def test_a_lazy_text_is_english_until_a_template_shows_it() -> None:
    text = LazyText("Sign in")
    languages.set_language("de")
    assert text == "Sign in"
    assert text.__html__() == "Anmelden"
