"""Moments in words, in each language as its speakers say them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from switchboard.resources.appointments.spoken_times import describe_moment

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
# Local times of a zone; with an offset, moments. Names of zones are those of standard time in zones that never change
# their clock, and those of the half of the year where it decides.
MOMENTS: list[tuple[str, str, Mapping[str, str]]] = [
    (
        "Europe/Berlin",
        "2026-12-01T14:30",
        {
            "en": "Tuesday, December 1, at 2:30 p.m., Central European Time",
            "de": "Dienstag, 1. Dezember, um 14:30 Uhr, Mitteleuropäische Zeit",
            "es": "martes, 1 de diciembre, a las 14:30, hora de Europa central",
            "fr": "mardi 1er décembre à 14 h 30, heure d’Europe centrale",
        },
    ),
    (
        "Europe/Berlin",
        "2027-07-01T09:00",
        {
            "en": "Thursday, July 1, at 9 a.m., Central European Time",
            "de": "Donnerstag, 1. Juli, um 9 Uhr, Mitteleuropäische Zeit",
            "es": "jueves, 1 de julio, a las 9:00, hora de Europa central",
            "fr": "jeudi 1er juillet à 9 h, heure d’Europe centrale",
        },
    ),
    (
        "America/New_York",
        "2026-12-24T12:00",
        {
            "en": "Thursday, December 24, at 12 noon, Eastern Time",
            "de": "Donnerstag, 24. Dezember, um 12 Uhr, Nordamerikanische Ostküstenzeit",
            "es": "jueves, 24 de diciembre, a las 12:00, hora oriental",
            "fr": "jeudi 24 décembre à 12 h, heure de l’Est nord-américain",
        },
    ),
    (
        "America/New_York",
        "2027-01-01T00:00",
        {
            "en": "Friday, January 1, at 12 a.m., Eastern Time",
            "de": "Freitag, 1. Januar, um 0 Uhr, Nordamerikanische Ostküstenzeit",
            "es": "viernes, 1 de enero, a las 0:00, hora oriental",
            "fr": "vendredi 1er janvier à 0 h, heure de l’Est nord-américain",
        },
    ),
    (
        "America/Phoenix",
        "2027-02-03T16:05",
        {
            "en": "Wednesday, February 3, at 4:05 p.m., Mountain Standard Time",
            "de": "Mittwoch, 3. Februar, um 16:05 Uhr, Rocky-Mountains-Normalzeit",
            "es": "miércoles, 3 de febrero, a las 16:05, hora estándar de las Montañas Rocosas",
            "fr": "mercredi 3 février à 16 h 05, heure normale des Rocheuses",
        },
    ),
    (
        "Europe/London",
        "2026-12-31T13:00",
        {
            "en": "Thursday, December 31, at 1 p.m., Greenwich Mean Time",
            "de": "Donnerstag, 31. Dezember, um 13 Uhr, Mittlere Greenwich-Zeit",
            "es": "jueves, 31 de diciembre, a las 13:00, hora del meridiano de Greenwich",
            "fr": "jeudi 31 décembre à 13 h, heure moyenne de Greenwich",
        },
    ),
    (
        "Europe/London",
        "2027-06-10T01:15",
        {
            "en": "Thursday, June 10, at 1:15 a.m., British Summer Time",
            "de": "Donnerstag, 10. Juni, um 1:15 Uhr, Britische Sommerzeit",
            "es": "jueves, 10 de junio, a la 1:15, hora de verano británica",
            "fr": "jeudi 10 juin à 1 h 15, heure d’été britannique",
        },
    ),
    (
        "Asia/Kathmandu",
        "2027-03-08T10:45",
        {
            "en": "Monday, March 8, at 10:45 a.m., Nepal Time",
            "de": "Montag, 8. März, um 10:45 Uhr, Nepalesische Zeit",
            "es": "lunes, 8 de marzo, a las 10:45, hora de Nepal",
            "fr": "lundi 8 mars à 10 h 45, heure du Népal",
        },
    ),
    (
        "Australia/Lord_Howe",
        "2027-05-01T00:30",
        {
            "en": "Saturday, May 1, at 12:30 a.m., Lord Howe Time",
            "de": "Samstag, 1. Mai, um 0:30 Uhr, Lord-Howe-Zeit",
            "es": "sábado, 1 de mayo, a las 0:30, hora de Lord Howe",
            "fr": "samedi 1er mai à 0 h 30, heure de Lord Howe",
        },
    ),
    (
        "UTC",
        "2026-11-30T08:00",
        {
            "en": "Monday, November 30, at 8 a.m., Coordinated Universal Time",
            "de": "Montag, 30. November, um 8 Uhr, Koordinierte Weltzeit",
            "es": "lunes, 30 de noviembre, a las 8:00, tiempo universal coordinado",
            "fr": "lundi 30 novembre à 8 h, temps universel coordonné",
        },
    ),
    (
        "Europe/Berlin",
        "2028-02-29T11:00",
        {
            "en": "Tuesday, February 29, 2028, at 11 a.m., Central European Time",
            "de": "Dienstag, 29. Februar 2028, um 11 Uhr, Mitteleuropäische Zeit",
            "es": "martes, 29 de febrero de 2028, a las 11:00, hora de Europa central",
            "fr": "mardi 29 février 2028 à 11 h, heure d’Europe centrale",
        },
    ),
    (
        "Europe/Berlin",
        "2026-10-25T00:30:00+00:00",
        {
            "en": "Sunday, October 25, 2026, at 2:30 a.m., Central European Summer Time",
            "de": "Sonntag, 25. Oktober 2026, um 2:30 Uhr, Mitteleuropäische Sommerzeit",
            "es": "domingo, 25 de octubre de 2026, a las 2:30, hora de verano de Europa central",
            "fr": "dimanche 25 octobre 2026 à 2 h 30, heure d’été d’Europe centrale",
        },
    ),
    (
        "Europe/Berlin",
        "2026-10-25T01:30:00+00:00",
        {
            "en": "Sunday, October 25, 2026, at 2:30 a.m., Central European Standard Time",
            "de": "Sonntag, 25. Oktober 2026, um 2:30 Uhr, Mitteleuropäische Normalzeit",
            "es": "domingo, 25 de octubre de 2026, a las 2:30, hora estándar de Europa central",
            "fr": "dimanche 25 octobre 2026 à 2 h 30, heure normale d’Europe centrale",
        },
    ),
    (
        "America/Sao_Paulo",
        "2027-10-31T20:00",
        {
            "en": "Sunday, October 31, at 8 p.m., Brasilia Standard Time",
            "de": "Sonntag, 31. Oktober, um 20 Uhr, Brasília-Normalzeit",
            "es": "domingo, 31 de octubre, a las 20:00, hora estándar de Brasilia",
            "fr": "dimanche 31 octobre à 20 h, heure normale de Brasilia",
        },
    ),
    (
        "America/Sao_Paulo",
        "2027-11-01T20:00",
        {
            "en": "Monday, November 1, 2027, at 8 p.m., Brasilia Standard Time",
            "de": "Montag, 1. November 2027, um 20 Uhr, Brasília-Normalzeit",
            "es": "lunes, 1 de noviembre de 2027, a las 20:00, hora estándar de Brasilia",
            "fr": "lundi 1er novembre 2027 à 20 h, heure normale de Brasilia",
        },
    ),
    (
        "Asia/Kolkata",
        "2027-08-15T17:45",
        {
            "en": "Sunday, August 15, at 5:45 p.m., India Standard Time",
            "de": "Sonntag, 15. August, um 17:45 Uhr, Indische Normalzeit",
            "es": "domingo, 15 de agosto, a las 17:45, hora estándar de la India",
            "fr": "dimanche 15 août à 17 h 45, heure de l’Inde",
        },
    ),
    (
        "Europe/Istanbul",
        "2027-04-01T08:20",
        {
            "en": "Thursday, April 1, at 8:20 a.m., Türkiye Time",
            "de": "Donnerstag, 1. April, um 8:20 Uhr, Türkei (Ortszeit)",
            "es": "jueves, 1 de abril, a las 8:20, hora de Turquía",
            "fr": "jeudi 1er avril à 8 h 20, heure : Turquie",
        },
    ),
    (
        "Etc/GMT+5",
        "2027-04-01T12:05",
        {
            "en": "Thursday, April 1, at 12:05 p.m., GMT-05:00",
            "de": "Donnerstag, 1. April, um 12:05 Uhr, GMT-05:00",
            "es": "jueves, 1 de abril, a las 12:05, GMT-05:00",
            "fr": "jeudi 1er avril à 12 h 05, UTC-05:00",
        },
    ),
    (
        "Europe/Dublin",
        "2027-04-01T12:05",
        {
            "en": "Thursday, April 1, at 12:05 p.m., Irish Standard Time",
            "de": "Donnerstag, 1. April, um 12:05 Uhr, Irische Sommerzeit",
            "es": "jueves, 1 de abril, a las 12:05, hora de verano de Irlanda",
            "fr": "jeudi 1er avril à 12 h 05, heure d’été irlandaise",
        },
    ),
    (
        "Europe/Dublin",
        "2026-12-01T12:05",
        {
            "en": "Tuesday, December 1, at 12:05 p.m., Greenwich Mean Time",
            "de": "Dienstag, 1. Dezember, um 12:05 Uhr, Mittlere Greenwich-Zeit",
            "es": "martes, 1 de diciembre, a las 12:05, hora del meridiano de Greenwich",
            "fr": "mardi 1er décembre à 12 h 05, heure moyenne de Greenwich",
        },
    ),
    (
        "Asia/Tokyo",
        "2026-12-01T18:00",
        {
            "en": "Tuesday, December 1, at 6 p.m., Japan Standard Time",
            "de": "Dienstag, 1. Dezember, um 18 Uhr, Japanische Normalzeit",
            "es": "martes, 1 de diciembre, a las 18:00, hora estándar de Japón",
            "fr": "mardi 1er décembre à 18 h, heure normale du Japon",
        },
    ),
    (
        "Europe/Kyiv",
        "2026-12-01T18:00",
        {
            "en": "Tuesday, December 1, at 6 p.m., Eastern European Time",
            "de": "Dienstag, 1. Dezember, um 18 Uhr, Osteuropäische Zeit",
            "es": "martes, 1 de diciembre, a las 18:00, hora de Europa oriental",
            "fr": "mardi 1er décembre à 18 h, heure d’Europe de l’Est",
        },
    ),
]


@pytest.mark.parametrize("language", ["en", "de", "es", "fr"])
@pytest.mark.parametrize(("zone", "moment", "texts"), MOMENTS, ids=[f"{zone} {moment}" for zone, moment, _ in MOMENTS])
def test_moments_are_described_as_people_say_them(
    zone: str, moment: str, texts: Mapping[str, str], language: str
) -> None:
    assert describe(moment, zone, language) == texts[language]


def describe(moment: str, zone: str, language: str, now: datetime = NOW) -> str:
    parsed = datetime.fromisoformat(moment)
    return describe_moment(
        parsed if parsed.tzinfo else parsed.replace(tzinfo=ZoneInfo(zone)), ZoneInfo(zone), language, now=now
    )


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-GB", "Tuesday 1 December, at 2:30 p.m., Central European Time"),
        ("de-AT", "Dienstag, 1. Dezember, um 14:30 Uhr, Mitteleuropäische Zeit"),
        ("fr_CA", "mardi 1er décembre à 14 h 30, heure de l’Europe centrale"),
        ("it", "martedì 1 dicembre 14:30, Ora dell’Europa centrale"),
        ("nl-NL", "dinsdag 1 december, 14:30, Midden-Europese tijd"),
        ("pt-BR", "terça-feira, 1 de dezembro 14:30, Horário da Europa Central"),
        ("ja", "12月1日(火曜日) 14:30, 中央ヨーロッパ時間"),
        ("zh-TW", "12月1日 星期二 下午2:30, 中歐時間"),
        ("de-XX-unknown", "Dienstag, 1. Dezember, um 14:30 Uhr, Mitteleuropäische Zeit"),
        ("multi", "Tuesday, December 1, at 2:30 p.m., Central European Time"),
        ("", "Tuesday, December 1, at 2:30 p.m., Central European Time"),
    ],
)
def test_other_languages_have_their_locale_or_english(language: str, text: str) -> None:
    assert describe("2026-12-01T14:30", "Europe/Berlin", language) == text


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        ("2026-10-31T10:00", "Saturday, October 31, 2026"),  # last month
        ("2026-11-01T10:00", "Sunday, November 1"),
        ("2027-10-31T10:00", "Sunday, October 31"),
        ("2027-11-01T10:00", "Monday, November 1, 2027"),  # in a year
        ("2025-12-01T10:00", "Monday, December 1, 2025"),
    ],
)
def test_the_year_is_said_unless_the_month_says_it(moment: str, day: str) -> None:
    assert describe(moment, "Europe/Berlin", "en").startswith(f"{day}, at 10 a.m.")


def test_months_are_those_of_the_zone() -> None:
    now = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)  # December has begun in Berlin.
    assert describe("2027-11-02T10:00", "Europe/Berlin", "de", now).startswith("Dienstag, 2. November, um")
    assert describe("2027-11-02T10:00", "UTC", "de", now).startswith("Dienstag, 2. November 2027, um")
