"""Days in the words that callers say: "tomorrow", "am Freitag", "el próximo martes", "le 29".

The platform counts the days, because a language model that counts them is sometimes wrong. A table of phrases does it:
of the libraries, dateparser (1.5.0, 2026-11) knows neither "am Freitag" nor "el próximo martes" nor "mardi prochain",
takes "may" for a day, and costs 0.4 s of the processor, 19 MB of memory, and four packages; parsedatetime (2.6, 2020)
knows English only, and takes "day after tomorrow" for tomorrow.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Final

from babel import Locale

MAX_LENGTH: Final = 100
"""Characters of a text that can be a day."""
DAYS_OF_WEEK: Final = 7
YEARS_TO_LEAP_DAY: Final = 8
"""Years within which the 29th of February comes again: 2100 has none."""

_Words = Mapping[str, str | None]


def resolve_day(text: str, today: date) -> date | None:
    """Return the day that a text in English, German, Spanish, or French means; None for anything else, never a guess.

    - "today", "tomorrow", "the day after tomorrow", "in three days", and "in two weeks" count from today. "In acht
      Tagen", "en ocho días", and "dans huit jours", which also mean a week, and "quinze jours" and "quince días", which
      also mean two weeks, are not understood.
    - A weekday alone, or with "this" or "coming" ("kommenden", "que viene", "qui vient"), is the next such day after
      today. With "next" ("nächsten", "próximo", "prochain") it is the day in the following week, which begins on
      Monday: on a Monday, "Tuesday" is tomorrow, and "next Tuesday" is eight days away.
    - "The 29th" is the next day of that number, and "the 3rd of January" the next day of that date, which may be today.
      With a year it is that date, even if it is over. A weekday that does not belong to the date makes it wrong.
    - An ISO date is that date.

    Case, accents, and punctuation do not matter. A text that means different days in two languages means none.
    """
    if len(text) > MAX_LENGTH or re.search(r"(?<!\d)-\d", text):
        return None
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text.strip(), re.ASCII):
        try:
            return date.fromisoformat(text.strip())
        except ValueError:
            return None
    words = _simplify(text)
    days = {day for phrases in _load_phrases() if (day := phrases.resolve(words, today)) is not None}
    return days.pop() if len(days) == 1 else None


def _simplify(text: str) -> str:
    """Return a text in lower case, without accents, and with a space in place of each punctuation mark."""
    letters = unicodedata.normalize("NFD", text.casefold())
    letters = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[^\w]+", " ", letters).split())


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Words and phrases of a language, without accents.

    A phrase is a regular expression, of whose places such as `{weekday}` each takes a word. `numbers` has the numbers
    from one on, and `ordinals` the days of a month from the first on, each with its variants between slashes.
    `ambiguous_days` are the numbers of days that also mean one or two weeks.
    """

    fixed: Mapping[int, str]
    numbers: str
    ordinals: str
    digits: str
    in_days: tuple[str, ...]
    in_weeks: tuple[str, ...]
    ambiguous_days: tuple[int, ...]
    coming: tuple[str, ...]
    following: tuple[str, ...]
    of_any_month: tuple[str, ...]
    of_a_month: tuple[str, ...]
    more_months: Mapping[str, int]


ENGLISH: Final = _Vocabulary(
    fixed={0: "today", 1: "tomorrow", 2: "(?:the )?day after tomorrow"},
    numbers="""one/a two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty twenty_one twenty_two twenty_three twenty_four twenty_five twenty_six
    twenty_seven twenty_eight twenty_nine thirty thirty_one""",
    ordinals="""first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty_first twenty_second twenty_third
    twenty_fourth twenty_fifth twenty_sixth twenty_seventh twenty_eighth twenty_ninth thirtieth thirty_first""",
    digits=r"\d{1,2}(?:st|nd|rd|th)",
    in_days=("in {number} days?", "{number} days? from (?:today|now)"),
    in_weeks=("in {number} weeks?", "{number} weeks? from (?:today|now)"),
    ambiguous_days=(),
    coming=("(?:on )?(?:(?:this|the|(?:this |the )?(?:up)?coming) )?{weekday}",),
    following=("(?:on )?(?:the )?next {weekday}", "(?:on )?{weekday} next week", "next week (?:on )?{weekday}"),
    of_any_month=("(?:on )?(?:{weekday} )?the {ordinal}", "(?:on )?(?:{weekday} )?(?:the )?{digits}"),
    of_a_month=(
        "(?:on )?(?:{weekday} )?(?:the )?{day}(?: of)? {month}(?: {year})?",
        "(?:on )?(?:{weekday} )?{month} (?:the )?{day}(?: {year})?",
    ),
    more_months={},
)
GERMAN: Final = _Vocabulary(
    fixed={0: "heute", 1: "morgen", 2: "ubermorgen|uebermorgen"},
    numbers="""eins/ein/einem/einer zwei drei vier funf/fuenf sechs sieben acht neun zehn elf zwolf/zwoelf dreizehn
    vierzehn funfzehn/fuenfzehn sechzehn siebzehn achtzehn neunzehn zwanzig einundzwanzig zweiundzwanzig
    dreiundzwanzig vierundzwanzig funfundzwanzig/fuenfundzwanzig sechsundzwanzig siebenundzwanzig achtundzwanzig
    neunundzwanzig dreissig einunddreissig""",
    ordinals="""erste[nr]? zweite[nr]? dritte[nr]? vierte[nr]? funfte[nr]?/fuenfte[nr]? sechste[nr]?
    siebte[nr]?/siebente[nr]? achte[nr]? neunte[nr]? zehnte[nr]? elfte[nr]? zwolfte[nr]?/zwoelfte[nr]?
    dreizehnte[nr]? vierzehnte[nr]? funfzehnte[nr]?/fuenfzehnte[nr]? sechzehnte[nr]? siebzehnte[nr]? achtzehnte[nr]?
    neunzehnte[nr]? zwanzigste[nr]? einundzwanzigste[nr]? zweiundzwanzigste[nr]? dreiundzwanzigste[nr]?
    vierundzwanzigste[nr]? funfundzwanzigste[nr]?/fuenfundzwanzigste[nr]? sechsundzwanzigste[nr]?
    siebenundzwanzigste[nr]? achtundzwanzigste[nr]? neunundzwanzigste[nr]? dreissigste[nr]? einunddreissigste[nr]?""",
    digits=r"\d{1,2}(?:s?te[nr]?)?",
    in_days=("(?:heute )?in {number} tag(?:en?)?",),
    in_weeks=("(?:heute )?in {number} wochen?",),
    ambiguous_days=(8,),
    coming=("(?:am )?(?:(?:(?:diese[nmrs]? )?kommende[nmrs]?|diese[nmrs]?) )?{weekday}",),
    following=(
        "(?:am )?nachste[nmrs]? {weekday}",
        "(?:am )?naechste[nmrs]? {weekday}",
        "(?:am )?{weekday} (?:in der )?(?:nachste|naechste|kommende)[nr]? woche",
        "(?:in der )?(?:nachste|naechste|kommende)[nr]? woche (?:am )?{weekday}",
    ),
    of_any_month=("(?:am|der|den) {day}", "(?:am |der |den )?{weekday} (?:der|den|dem) {day}"),
    of_a_month=("(?:am |der |den )?(?:{weekday} )?(?:der |den |dem )?{day} {month}(?: {year})?",),
    more_months={"janner": 1, "jaenner": 1, "feber": 2, "maerz": 3},
)
SPANISH: Final = _Vocabulary(
    fixed={0: "hoy", 1: "manana", 2: "pasado manana"},
    numbers="""uno/un/una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis
    diecisiete dieciocho diecinueve veinte veintiuno/veintiun/veintiuna veintidos veintitres veinticuatro veinticinco
    veintiseis veintisiete veintiocho veintinueve treinta treinta_y_uno/treinta_y_un/treinta_y_una""",
    ordinals="""primero/uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis
    diecisiete dieciocho diecinueve veinte veintiuno veintidos veintitres veinticuatro veinticinco veintiseis
    veintisiete veintiocho veintinueve treinta treinta_y_uno""",
    digits=r"\d{1,2}",
    in_days=("(?:en|dentro de) {number} dias?",),
    in_weeks=("(?:en|dentro de) {number} semanas?",),
    ambiguous_days=(8, 15),
    coming=("(?:el |este )?{weekday}", "(?:el |este )?{weekday} que viene"),
    following=(
        "(?:el )?proximo {weekday}",
        "(?:el )?{weekday} proximo",
        "(?:el )?{weekday} de la (?:proxima semana|semana proxima|semana que viene)",
        "la (?:proxima semana|semana proxima|semana que viene) el {weekday}",
    ),
    of_any_month=("el (?:dia )?{day}", "(?:el )?{weekday} (?:dia )?{day}"),
    of_a_month=("(?:el )?(?:{weekday} )?(?:dia )?{day} de {month}(?: (?:de |del )?{year})?",),
    more_months={"setiembre": 9},
)
FRENCH: Final = _Vocabulary(
    fixed={0: "aujourd ?hui", 1: "demain", 2: "apres demain"},
    numbers="""un/une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix_sept
    dix_huit dix_neuf vingt vingt_et_un/vingt_et_une vingt_deux vingt_trois vingt_quatre vingt_cinq vingt_six
    vingt_sept vingt_huit vingt_neuf trente trente_et_un/trente_et_une""",
    ordinals="""premier/1er deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
    dix_sept dix_huit dix_neuf vingt vingt_et_un vingt_deux vingt_trois vingt_quatre vingt_cinq vingt_six vingt_sept
    vingt_huit vingt_neuf trente trente_et_un""",
    digits=r"\d{1,2}",
    in_days=("dans {number} jours?",),
    in_weeks=("dans {number} semaines?",),
    ambiguous_days=(8, 15),
    coming=("(?:ce )?{weekday}", "(?:le |ce )?{weekday} qui vient"),
    following=(
        "(?:le )?{weekday} prochain",
        "(?:le )?{weekday} de la semaine prochaine",
        "la semaine prochaine (?:le )?{weekday}",
    ),
    of_any_month=("le {day}", "(?:le )?{weekday} (?:le )?{day}"),
    of_a_month=("(?:le )?(?:{weekday} )?(?:le )?{day} (?:de )?{month}(?: {year})?",),
    more_months={},
)
VOCABULARIES: Final = {"en": ENGLISH, "de": GERMAN, "es": SPANISH, "fr": FRENCH}


class _Phrases:
    """The compiled phrases of a language, and the days that they mean."""

    def __init__(self, language: str, vocabulary: _Vocabulary) -> None:
        locale = Locale.parse(language)
        self._ambiguous_days = vocabulary.ambiguous_days
        self._weekdays = {_simplify(name): number for number, name in locale.days["format"]["wide"].items()}
        if language == "de":
            self._weekdays["sonnabend"] = self._weekdays["samstag"]
        widths = (locale.months["format"][width] for width in ("wide", "abbreviated"))
        self._months = {_simplify(name): number for names in widths for number, name in names.items()}
        self._months |= vocabulary.more_months
        self._numbers = _split_numbers(vocabulary.numbers)
        self._ordinals = _split_numbers(vocabulary.ordinals)
        self._days_ahead = [(re.compile(phrase), days) for days, phrase in vocabulary.fixed.items()]
        rules = (
            (vocabulary.in_days, self._count_days),
            (vocabulary.in_weeks, self._count_weeks),
            (vocabulary.coming, self._find_coming_weekday),
            (vocabulary.following, self._find_following_weekday),
            (vocabulary.of_any_month, self._find_day_of_any_month),
            (vocabulary.of_a_month, self._find_day_of_month),
        )
        self._rules = [(self._compile(phrase, vocabulary), rule) for phrases, rule in rules for phrase in phrases]

    def resolve(self, words: str, today: date) -> date | None:
        """Return the day of the phrase that the words are; None if they are none of this language."""
        for pattern, days in self._days_ahead:
            if pattern.fullmatch(words):
                return today + timedelta(days=days)
        for pattern, rule in self._rules:
            if match := pattern.fullmatch(words):
                return rule(match.groupdict(), today)
        return None

    def _compile(self, phrase: str, vocabulary: _Vocabulary) -> re.Pattern[str]:
        ordinals = "|".join(self._ordinals)
        places = {
            "weekday": "|".join(self._weekdays),
            "month": "|".join(self._months),
            "year": r"\d{4}",
            "number": rf"[1-9]\d{{0,2}}|{'|'.join(self._numbers)}",
        }
        days = {"ordinal": ordinals, "digits": vocabulary.digits, "day": rf"\d{{1,2}}|{vocabulary.digits}|{ordinals}"}
        for place, words in places.items():
            phrase = phrase.replace(f"{{{place}}}", f"(?P<{place}>{words})")
        for place, words in days.items():
            phrase = phrase.replace(f"{{{place}}}", f"(?P<day>{words})")
        return re.compile(phrase, re.ASCII)

    def _count_days(self, words: _Words, today: date) -> date | None:
        number = _read_number(words["number"], self._numbers)
        return None if number in self._ambiguous_days else today + timedelta(days=number)

    def _count_weeks(self, words: _Words, today: date) -> date:
        return today + timedelta(weeks=_read_number(words["number"], self._numbers))

    def _find_coming_weekday(self, words: _Words, today: date) -> date:
        days = self._weekdays[words["weekday"] or ""] - today.weekday() - 1
        return today + timedelta(days=days % DAYS_OF_WEEK + 1)

    def _find_following_weekday(self, words: _Words, today: date) -> date:
        days = self._weekdays[words["weekday"] or ""] - today.weekday()
        return today + timedelta(days=days + DAYS_OF_WEEK)

    def _find_day_of_any_month(self, words: _Words, today: date) -> date | None:
        day = _read_number(words["day"], self._ordinals)
        months = (divmod(today.month - 1 + ahead, 12) for ahead in range(12))
        days = (_build_date(today.year + years, month + 1, day) for years, month in months)
        return self._choose(words, days, earliest=today)

    def _find_day_of_month(self, words: _Words, today: date) -> date | None:
        day, month = _read_number(words["day"], self._ordinals), self._months[words["month"] or ""]
        if year := words["year"]:
            return self._choose(words, [_build_date(int(year), month, day)])
        days = (_build_date(today.year + ahead, month, day) for ahead in range(YEARS_TO_LEAP_DAY + 1))
        return self._choose(words, days, earliest=today)

    def _choose(self, words: _Words, days: Iterable[date | None], *, earliest: date = date.min) -> date | None:
        """Return the first day that exists and is not too early; None without one, or if the words have another
        weekday.
        """
        day, weekday = next((day for day in days if day is not None and day >= earliest), None), words.get("weekday")
        return day if day is None or weekday is None or day.weekday() == self._weekdays[weekday] else None


@cache
def _load_phrases() -> list[_Phrases]:
    return [_Phrases(language, vocabulary) for language, vocabulary in VOCABULARIES.items()]


def _split_numbers(text: str) -> list[str]:
    """Return the patterns of the numbers from one on."""
    return [entry.replace("/", "|").replace("_", " ") for entry in text.split()]


def _read_number(word: str | None, patterns: Sequence[str]) -> int:
    """Return the number of digits, which a suffix may follow, or of a word."""
    if digits := re.match(r"\d+", word or ""):
        return int(digits[0])
    return next(number for number, pattern in enumerate(patterns, 1) if re.fullmatch(pattern, word or ""))


def _build_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
