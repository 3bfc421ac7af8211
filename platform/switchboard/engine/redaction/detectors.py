"""Built-in detectors of private data. They search texts whose spoken numbers are digits already."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final, Protocol, cast

from phonenumbers import PhoneNumberMatcher
from stdnum import iban, luhn

from switchboard.plugin_sdk.private_data import PrivateDataDetector, SpokenText

SEPARATORS: Final = r"[\s.,/-]{0,6}"
DIGIT_RUN: Final = re.compile(rf"(?<!\w)\d(?:{SEPARATORS}\d)*(?!\w)")
CARD_LENGTHS: Final = (
    (re.compile("4"), (13, 16, 19)),
    (re.compile("5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile("3[47]"), (15,)),
    (re.compile("30[0-5]|3[68]"), (14, 16)),
    (re.compile("35(2[89]|[3-8])"), (16,)),
    (re.compile("6(011|5|4[4-9])"), (16, 19)),
    (re.compile("62"), (16, 17, 18, 19)),
    (re.compile("50|5[6-9]|6[0-9]"), (13, 14, 15, 16, 17, 18, 19)),
)
"""First digits and lengths of Visa, Mastercard, American Express, Diners, JCB, Discover, UnionPay, and Maestro
(ISO/IEC 7812 and the networks' own lists)."""
SHOWN_CARD_DIGITS: Final = 6
"""Digits of an unfinished card number that may be seen: PCI DSS 4.0, requirement 3.4.1, allows the first six."""
MAX_IBAN, MIN_IBAN = 34, 15
MIN_PHONE_DIGITS, MAX_PHONE_DIGITS = 6, 12
SHOWN_IBAN_CHARACTERS: Final = 8
NATIONAL_IDS: Final = {
    "us.ssn": "DDDDDDDDD", "ca.sin": "DDDDDDDDD", "de.idnr": "DDDDDDDDDDD", "at.vnr": "DDDDDDDDDD",
    "ch.ssn": "DDDDDDDDDDDDD", "es.dni": "DDDDDDDDL", "es.nie": "LDDDDDDDL", "fr.nir": "DDDDDDXDDDDDDDD",
    "it.codicefiscale": "LLLLLLXXLXXLXXXL", "gb.nhs": "DDDDDDDDDD", "nl.bsn": "DDDDDDDDD", "be.nn": "DDDDDDDDDDD",
    "pl.pesel": "DDDDDDDDDDD",
}  # fmt: skip
"""Modules of python-stdnum, and the shapes of their numbers: D a digit, L a letter, X either."""
SHAPE: Final = {"D": r"\d", "L": "[A-Za-z]", "X": "[A-Za-z0-9]"}
INTERNATIONAL: Final = re.compile(
    rf"(?:\+|\bplus\s+|\b00){SEPARATORS}[1-9](?:{SEPARATORS}\d){{6,14}}(?!\d)", re.IGNORECASE
)
AT: Final = r"(?:\s*@\s*|\s+(?:at|ät|aet|arroba|arobase|arobas|klammeraffe)\s+)"
DOT: Final = r"(?:\s*\.\s*|\s+(?:dot|punkt|punto|point)\s+)"
JOINT: Final = r"(?:\s*[.+-]+\s*|\s+(?:dot|punkt|punto|point|plus)\s+)"
EMAIL: Final = re.compile(
    rf"(?:(?<![\w'’])\w\s+)*(?:[^\W\d]+\s+(?=\d))?\w+(?:{JOINT}\w+)*{AT}(?:\w\s+)*\w+(?:{JOINT}\w+)*{DOT}[a-z]{{2,}}\b",
    re.IGNORECASE,
)
"""One way only to match each part: a text of a thousand dots must not take time that grows with their combinations."""
CODE_NAMES: Final = re.compile(
    r"\b(?:p\s?i\s?n|pins|pass\s?codes?|pass\s?words?|cvv2?|cvc2?|tan|otp|"
    r"(?:security|access|verification|confirmation|one.time|1.time) (?:codes?|numbers?)|"
    r"(?:geheim|sicherheits|prüf|bestätigungs|zugangs)(?:zahl|code|nummer|ziffer)n?|kennwort|passwort|kennzahl|"
    r"clave|contraseña|código(?: (?:de seguridad|secreto|de verificación))?|"
    r"mot de passe|code (?:secret|confidentiel|de sécurité|de vérification|d'accès))\b",
    re.IGNORECASE,
)
CODE: Final = re.compile(rf"(?<!\w)\d(?:{SEPARATORS}\d){{2,}}(?!\w)")


class CardNumberDetector(PrivateDataDetector):
    """Card numbers by network, length, and check digit, with what follows them (expiry date, security code)."""

    name = "card_number"
    title = "Numbers of payment cards, and an unfinished one at the end of an utterance"

    def find(self, spoken: SpokenText) -> Iterator[tuple[int, int]]:
        for match in DIGIT_RUN.finditer(spoken.text):
            places = [match.start() + place for place, character in enumerate(match[0]) if character.isdigit()]
            digits = "".join(spoken.text[place] for place in places)
            first = next((first for first in range(len(digits)) if _begins_with_card_number(digits[first:])), None)
            if first is not None:
                yield places[first], match.end()
            elif _is_end(spoken.text, match.end()) and _is_unfinished(digits):
                phone_numbers = _find_phone_numbers(spoken)
                if not any(start <= match.start() and match.end() <= end for start, end in phone_numbers):
                    yield match.span()


class BankAccountDetector(PrivateDataDetector):
    """International bank account numbers (ISO 13616), by the country's format and check digits."""

    name = "iban"
    title = "International bank account numbers (IBAN), and an unfinished one at the end of an utterance"
    _start = re.compile(r"(?<!\w)[A-Za-z][\s.-]?[A-Za-z](?:[\s.-]{0,3}\d){2}")
    _more = re.compile(r"[\s.,-]{0,3}([A-Za-z0-9])")
    _code = re.compile(r"[A-Za-z](\s[A-Za-z]\s|[A-Za-z](?=\d))")
    """A country code that is not a word: `DE89`, or `D E 8 9`, but not "at 41"."""

    def find(self, spoken: SpokenText) -> Iterator[tuple[int, int]]:
        for start in self._start.finditer(spoken.text):
            places = [place for place in range(start.start(), start.end()) if spoken.text[place].isalnum()]
            while len(places) < MAX_IBAN and (more := self._more.match(spoken.text, places[-1] + 1)):
                places.append(more.start(1))
            characters = "".join(spoken.text[place] for place in places)
            length = next((n for n in range(len(characters), MIN_IBAN - 1, -1) if iban.is_valid(characters[:n])), 0)
            rest = re.match(rf"(?:{SEPARATORS}\d)*", spoken.text[start.end() :])
            end = start.end() + (rest.end() if rest else 0)
            if length:
                yield start.start(), places[length - 1] + 1
            elif len(characters) > SHOWN_IBAN_CHARACTERS and _is_end(spoken.text, end) and self._code.match(start[0]):
                yield start.start(), end


class _StandardNumber(Protocol):
    def is_valid(self, number: str) -> bool: ...


class NationalIdDetector(PrivateDataDetector):
    """National ids of persons, by python-stdnum's checks.

    Short numbers of digits count only in the language's own country: one in ten phone numbers would pass as the id of
    some other country.
    """

    name = "national_id"
    title = "National ids: social security, tax, and identity card numbers"
    _kinds = tuple(
        (
            re.compile(r"(?<!\w)" + r"[\s./-]{0,3}".join(SHAPE[kind] for kind in shape) + r"(?!\w)"),
            cast("_StandardNumber", import_module(f"stdnum.{module}")),
            None if len(shape) > MAX_PHONE_DIGITS or "L" in shape else module[:2].upper(),
        )
        for module, shape in NATIONAL_IDS.items()
    )

    def find(self, spoken: SpokenText) -> Iterator[tuple[int, int]]:
        region = _get_region(spoken.language)
        for pattern, kind, country in self._kinds:
            for match in pattern.finditer(spoken.text) if country in (None, region) else ():
                if kind.is_valid(re.sub(r"\W", "", match[0])):
                    yield match.span()


class PhoneNumberDetector(PrivateDataDetector):
    """Phone numbers in international form, or in that of the language's country."""

    name = "phone_number"
    title = "Phone numbers, international or of the language's country"

    def find(self, spoken: SpokenText) -> Iterator[tuple[int, int]]:
        return _find_phone_numbers(spoken)


class EmailAddressDetector(PrivateDataDetector):
    """E-mail addresses, written or spoken ("ada dot lovelace at example dot com")."""

    name = "email_address"
    title = "E-mail addresses, written or spoken"

    def find(self, spoken: SpokenText) -> Iterator[tuple[int, int]]:
        return (match.span() for match in EMAIL.finditer(spoken.text))


class PinDetector(PrivateDataDetector):
    """Secret numbers after their name, and every digit that answers a question for one."""

    name = "pin"
    title = "PINs, security codes, and passwords of digits, where they are named or asked for"

    def find(self, spoken: SpokenText) -> Iterator[tuple[int, int]]:
        if CODE_NAMES.search(spoken.question):
            yield from (match.span() for match in DIGIT_RUN.finditer(spoken.text))
        elif CODE_NAMES.search(spoken.text):
            yield from (match.span() for match in CODE.finditer(spoken.text))


BUILT_IN: Final[tuple[type[PrivateDataDetector], ...]] = (
    BankAccountDetector, CardNumberDetector, NationalIdDetector, PinDetector, PhoneNumberDetector, EmailAddressDetector,
)  # fmt: skip
"""By precedence: of two kinds that find the same text, the first names it."""


def _begins_with_card_number(digits: str) -> bool:
    return any(
        length <= len(digits) and luhn.is_valid(digits[:length])
        for prefix, lengths in CARD_LENGTHS
        if prefix.match(digits)
        for length in lengths
    )


def _is_unfinished(digits: str) -> bool:
    """Return whether more digits could make these a card number."""
    return len(digits) > SHOWN_CARD_DIGITS and any(
        prefix.match(digits) and len(digits) < max(lengths) for prefix, lengths in CARD_LENGTHS
    )


def _is_end(text: str, place: int) -> bool:
    return not text[place:].strip(" .,!?;:…")


def _find_phone_numbers(spoken: SpokenText) -> Iterator[tuple[int, int]]:
    """Yield international numbers, and the national ones that libphonenumber finds valid in the language's country."""
    yield from (match.span() for match in INTERNATIONAL.finditer(spoken.text))
    if len(re.findall(r"\d", spoken.text)) >= MIN_PHONE_DIGITS:
        region = _get_region(spoken.language)
        yield from ((match.start, match.end) for match in PhoneNumberMatcher(spoken.text, region))


def _get_region(language: str) -> str:
    """Return the country of a BCP 47 tag, or the main country of its language."""
    base, *subtags = language.split("-")
    regions = [tag.upper() for tag in subtags if len(tag) == 2]
    return regions[0] if regions else {"en": "US"}.get(base, base.upper())
