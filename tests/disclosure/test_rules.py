"""Rules of jurisdictions: the file of presets, the place of a number, and the rule that applies."""

import random
from datetime import date
from urllib.parse import urlsplit

import phonenumbers
import pytest
from pydantic import JsonValue
from switchboard.engine.disclosure.disclosure import ANSWER_KEYS
from switchboard.engine.disclosure.places import find_place, is_place
from switchboard.engine.disclosure.settings import DisclosureSettings
from switchboard.resources.disclosure.presets import Preset, load_presets
from switchboard.resources.disclosure.rules import AppliedRule, combine_rules, find_rule

PRESETS = load_presets()


def get_site(url: str) -> str:
    return urlsplit(url).netloc.removeprefix("www.")


@pytest.mark.parametrize(("name", "preset"), PRESETS.items(), ids=PRESETS)
def test_each_preset_has_places_sources_and_dates(name: str, preset: Preset) -> None:
    assert all(is_place(place) for place in preset.places)
    for source in preset.sources:
        assert date(2026, 1, 1) <= source.read_on
        assert source.url.startswith("https://")
        official, read, second = map(get_site, (source.url, source.read_at, source.confirmed_at or ""))
        assert second not in (official, read)
        assert second or read == official, f"{source.law}: one page that is not official is no source"
    assert not preset.all_parties or preset.consent != "none", "recording without asking would be an offense"
    parent, _, region = name.partition("-")
    assert not region or parent in PRESETS


def test_the_presets_cover_the_union_and_the_states_that_want_the_consent_of_all() -> None:
    assert len(PRESETS["eu"].places) == 27
    states = {name for name, preset in PRESETS.items() if name.startswith("us-") and preset.all_parties}
    wanted = "ca ct de fl il ma md mt nh nv pa wa"
    assert states == {f"us-{state}" for state in wanted.split()}
    assert any("Articles 50(1)" in source.law for source in PRESETS["eu-de"].sources)


@pytest.mark.parametrize(
    ("number", "place"),
    [
        ("+4930123456", "DE"),
        ("+33123456789", "FR"),
        ("+442071838750", "GB"),
        ("+14155552671", "US-CA"),
        ("+12065550123", "US-WA"),
        ("+15145551212", "CA-QC"),
        ("+17875551234", "PR"),
        ("+18005551234", "US"),
        ("+15550100001", "US"),
        ("browser", None),
        ("", None),
        ("+999", None),
    ],
)
def test_a_number_has_a_place(number: str, place: str | None) -> None:
    assert find_place(number) == place


def find(number: str, **settings: JsonValue) -> AppliedRule:
    return find_rule(DisclosureSettings.model_validate(settings), find_place(number))


def test_a_region_wins_over_its_country_and_own_rules_over_presets() -> None:
    own: JsonValue = {"US": {"consent": "notice"}, "US-CA": {"consent": "ask"}}
    assert find("+14155552671", countries=own, presets=["us"]) == AppliedRule(False, "ask", ("countries.US-CA",))
    assert find("+12125550123", countries=own, presets=["us"]).consent == "notice"
    assert find("+4930123456", countries=own, ai_notice=True) == AppliedRule(True, "none", ("default",))
    assert find("browser", countries=own, consent="notice").consent == "notice"


def test_a_preset_includes_those_beneath_it_and_the_strictest_counts() -> None:
    assert find("+14155552671", presets=["us"]).names == (
        "preset us of 2026-11-22",
        "preset us-ca of 2026-11-22",
    )
    assert (find("+14155552671", presets=["us"]).consent, find("+12125550123", presets=["us"]).consent) == (
        "notice",
        "none",
    )
    assert find("+13055550123", presets=["us-ca"], consent="none").names == ("default",)
    assert find("+4930123456", presets=["eu"]).consent == "ask"
    assert find("+18005551234", presets=["us"]).consent == "ask", "a toll-free number may be anywhere"


def test_an_unknown_preset_of_a_later_version_is_ignored() -> None:
    assert find("+4930123456", presets=["zz"], consent="ask").consent == "ask"


def test_the_stricter_part_of_each_rule_counts() -> None:
    agent, organization = AppliedRule(True, "none", ("a",)), AppliedRule(False, "notice", ("b",))
    assert combine_rules([agent, organization]) == AppliedRule(True, "notice", ("a", "b"))
    assert combine_rules([]) == AppliedRule()


def test_keys_answer_the_question() -> None:
    assert [ANSWER_KEYS.get(key) for key in "12#"] == [True, False, None]


def test_area_codes_are_in_the_country_that_the_numbering_plan_says() -> None:
    """Checks the table against `phonenumbers`, whose geocoder is too large for a server process."""
    chosen = random.Random(0)
    for _ in range(2000):
        number = f"+1{chosen.randint(200, 989)}{chosen.randint(200, 999)}{chosen.randint(0, 9999):04}"
        country, place = phonenumbers.region_code_for_number(phonenumbers.parse(number)), find_place(number) or ""
        if "-" in place and country is not None:
            assert place.startswith(country), number
