"""Days in the words of callers, in four languages."""

from datetime import date

import pytest
from switchboard.resources.appointments.spoken_days import resolve_day

MONDAY = date(2026, 11, 30)
UNDERSTOOD = {
    "2026-11-30": ["today", "heute", "hoy", "aujourd'hui", "Aujourd’hui", "the 30th", "am 30.", "2026-11-30"],
    "2026-12-01": [
        "tomorrow", "Tomorrow!", "Tuesday", "on Tuesday", "this Tuesday", "this coming Tuesday", "in a day",
        "in 1 day", "Tuesday, December 1", "December 1st", "December first", "the first", "the 1st of December 2026",
        "morgen", "am Dienstag", "Dienstag", "kommenden Dienstag", "am kommenden Dienstag", "diesen Dienstag",
        "in einem Tag", "Dienstag, 1. Dezember", "am 1.", "am ersten", "Dienstag, den 1. Dezember", "mañana",
        "manana", "martes", "el martes", "este martes", "el martes que viene", "el primero de diciembre",
        "martes, 1 de diciembre", "martes 1 de diciembre de 2026", "el 1", "en un día", "demain", "mardi", "ce mardi",
        "mardi qui vient", "mardi 1er décembre", "le 1er", "le premier", "dans un jour", " 2026-12-01 ",
    ],
    "2026-12-02": [
        "the day after tomorrow", "day after tomorrow", "übermorgen", "Übermorgen", "uebermorgen", "pasado mañana",
        "après-demain", "apres demain", "in two days", "in 2 days", "in zwei Tagen", "en dos días",
        "dentro de 2 días", "dans deux jours", "am Mittwoch", "miércoles", "mercredi",
    ],
    "2026-12-04": ["Friday", "am Freitag", "viernes", "vendredi", "this Friday", "kommenden Freitag", "ce vendredi"],
    "2026-12-05": ["Saturday", "Samstag", "Sonnabend", "sábado", "samedi"],
    "2026-12-07": [
        "Monday", "next Monday", "Montag", "nächsten Montag", "lunes", "el próximo lunes", "lundi", "lundi prochain",
        "in a week", "in one week", "a week from today", "in einer Woche", "heute in einer Woche", "en una semana",
        "dentro de una semana", "dans une semaine", "in seven days", "in sieben Tagen", "en siete días",
        "dans sept jours",
    ],
    "2026-12-08": [
        "next Tuesday", "Tuesday next week", "next week on Tuesday", "nächsten Dienstag", "am nächsten Dienstag",
        "Dienstag nächster Woche", "nächste Woche Dienstag", "kommende Woche am Dienstag", "el próximo martes",
        "el martes próximo", "el martes de la próxima semana", "la semana que viene el martes", "mardi prochain",
        "mardi de la semaine prochaine", "in eight days",
    ],
    "2026-12-14": [
        "in two weeks", "in 2 weeks", "two weeks from now", "in zwei Wochen", "in vierzehn Tagen", "en dos semanas",
        "dentro de dos semanas", "dans deux semaines", "dans quatorze jours",
    ],
    "2026-12-29": [
        "the 29th", "29th", "the twenty-ninth", "Tuesday the 29th", "am 29.", "am 29", "den 29.",
        "am neunundzwanzigsten", "Dienstag, der 29.", "el 29", "el día 29", "el veintinueve", "martes 29", "le 29",
        "le vingt-neuf", "mardi 29",
    ],
    "2027-01-03": [
        "the 3rd of January", "January 3rd", "January 3", "Jan 3", "3 January", "January third",
        "Sunday, January 3, 2027", "am 3. Januar", "am dritten Januar", "3. Jänner", "Sonntag, der 3. Januar 2027",
        "el 3 de enero", "el tres de enero", "el domingo 3 de enero de 2027", "le 3 janvier", "le trois janvier",
        "dimanche 3 janvier",
    ],
    "2027-02-28": ["the 28th of February", "28. Februar", "28 de febrero", "28 février"],
    "2027-03-01": ["March 1", "am 1. März", "1. Maerz", "el uno de marzo", "le premier mars"],
    "2027-11-29": ["November 29", "am 29. November", "el 29 de noviembre", "le 29 novembre"],
    "2028-02-29": ["February 29", "am 29. Februar", "el 29 de febrero", "le 29 février", "2028-02-29"],
    "2020-05-04": ["May 4, 2020", "4. Mai 2020", "4 de mayo de 2020", "4 mai 2020", "2020-05-04"],
}  # fmt: skip
NOT_UNDERSTOOD = [
    "", "foo", "12", "may", "mañana por la mañana", "tomorrow morning", "not tomorrow", "next week", "in a month",
    "soon", "03/04", "3.4.", "29.12.2026", "2026-02-29", "2026-13-01", "2026/12/01", "20261201", "February 30",
    "am 31. April", "the 32nd", "the 0th", "el 45", "Fridays", "freitags", "los viernes", "Tuesday or Wednesday",
    "Wednesday, December 1", "Monday the 29th", "Mittwoch, 1. Dezember", "miércoles 1 de diciembre",
    "mercredi 1er décembre", "in 0 days", "in -3 days", "in 2.5 weeks", "in 1000 days", "in many days",
    "in acht Tagen", "in 8 Tagen", "en ocho días", "en quince días", "dans huit jours", "dans 15 jours",
    "dans quinze jours", "the day before tomorrow", "yesterday", "gestern", "the", "next", "December", "January 0",
    "0000-01-01", "January 3, 0000", "x" * 10_000, "in " * 30,
]  # fmt: skip


@pytest.mark.parametrize(("day", "texts"), UNDERSTOOD.items(), ids=UNDERSTOOD)
def test_days_are_resolved(day: str, texts: list[str]) -> None:
    assert {text: resolve_day(text, MONDAY) for text in texts} == dict.fromkeys(texts, date.fromisoformat(day))


def test_a_text_that_is_not_understood_is_no_day() -> None:
    assert {text: resolve_day(text, MONDAY) for text in NOT_UNDERSTOOD} == dict.fromkeys(NOT_UNDERSTOOD)


@pytest.mark.parametrize(
    ("today", "text", "day"),
    [
        ("2026-12-01", "Tuesday", "2026-12-08"),  # never today
        ("2026-12-01", "next Tuesday", "2026-12-08"),
        ("2026-12-06", "Tuesday", "2026-12-08"),  # on a Sunday the following week begins tomorrow
        ("2026-12-06", "next Tuesday", "2026-12-08"),
        ("2026-12-06", "nächsten Sonntag", "2026-12-13"),
        ("2026-12-02", "el próximo martes", "2026-12-08"),
        ("2026-12-02", "vendredi prochain", "2026-12-11"),
        ("2026-12-31", "demain", "2027-01-01"),
        ("2026-12-31", "the 30th", "2027-01-30"),
        ("2027-01-31", "the 30th", "2027-03-30"),  # February has none
        ("2027-02-28", "tomorrow", "2027-03-01"),
        ("2028-02-28", "morgen", "2028-02-29"),
        ("2028-02-29", "February 29", "2028-02-29"),
        ("2028-03-01", "February 29", "2032-02-29"),
        ("2096-03-01", "February 29", "2104-02-29"),
        ("2028-02-29", "in 52 weeks", "2029-02-27"),
        ("2026-12-29", "le 29", "2026-12-29"),
    ],
)
def test_days_depend_on_today(today: str, text: str, day: str) -> None:
    assert resolve_day(text, date.fromisoformat(today)) == date.fromisoformat(day)
