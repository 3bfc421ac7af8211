"""Statements that an agent must not make, found in a sentence before it is spoken or sent.

`claims.toml` has what sentences claim in the dashboard's languages. Where the words leave doubt, a model is asked
(`gate.py`). docs/decisions/0101-claims.md says what is found, and what is not.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from textwrap import wrap
from typing import Final, Literal, NamedTuple, TypeAlias

from switchboard.engine.conversation.agent_settings import BUILT_IN_CLAIMS, AgentSettings, Claim
from switchboard.engine.conversation.handoff_tools import TOOL_PREFIX
from switchboard.engine.conversation.spoken_numbers import (
    TimeOfDay,
    has_times,
    list_numbers,
    list_prices,
    list_times,
    write_digits,
)
from switchboard.plugin_sdk import Message
from switchboard.plugin_sdk.languages import get_base_language

Weight: TypeAlias = Literal["nothing", "doubtful", "certain"]
WEIGHTS: Final[Sequence[Weight]] = ("nothing", "doubtful", "certain")
CLAUSE_END: Final = re.compile(r"[,;:](?!\d)|[–—]| - |\.\s|\b(?:but|aber|pero|mais)\b")
CONJUNCTION: Final = re.compile(r"\b(?:and|so|then|und|y|e|et)\b")
LONGEST_CLAUSE: Final = 240
"""Longer clauses are searched in pieces."""
TAG_WORDS: Final = 3
"""Most words of a tag question, such as "okay?"."""
YES_WORDS: Final = 4
"""Most words after a yes."""
FIGURES: Final = ("price", "opening_hours")
"""Claims that are true if the agent was given the figure."""
ANYTHING: Final = "done"
"""Words that say that something has been done, and not what."""
MOMENTARY: Final = "transferred"
"""The claim whose tools count for one answer only: a caller may be transferred again."""
DESCRIPTIONS: Final[Mapping[str, str]] = {
    "booked": "that an appointment or reservation has been booked",
    "rescheduled": "that an appointment or reservation has been moved",
    "canceled": "that an appointment, reservation, or order has been canceled",
    "transferred": "that the other side has been, or is being, connected with somebody else",
    "message_sent": "that a message has been sent, or is being sent",
    "opted_out": "that a number has been removed from a list, or will not be contacted any more",
    "refunded": "that money has been refunded or credited",
    "price": "what something costs at the business that the agent speaks for",
    "opening_hours": "when the business that the agent speaks for opens or closes",
}
"""What each built-in claim says, for the model that is asked."""
CLAIM_QUESTION: Final = (
    "Does the sentence say or imply {claims}? A question, an offer, a promise, a condition, a denial, and a report of "
    "what others have said do not."
)
TOPIC_QUESTION: Final = "Does the sentence say anything about {topic}, except that the agent does not talk about it?"


class Finding(NamedTuple):
    """A statement that the agent must not make now. Unless it is certain, a model answers the `question`."""

    rule: Literal["claim", "phrase", "topic"]
    name: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class _Language:
    """The patterns of a language, and those of each built-in claim."""

    patterns: Mapping[str, re.Pattern[str]]
    claims: Mapping[str, Mapping[str, re.Pattern[str]]]


class _Clause(NamedTuple):
    """A clause in lower case, and what a claim in it weighs."""

    text: str
    weight: Weight


def list_tools(claim: Claim) -> tuple[str, ...]:
    """Return the names of the tools that make a claim true; one that ends in `_` begins names."""
    return (*BUILT_IN_CLAIMS.get(claim.name, ()), *claim.tools)


def list_true(claim: Claim, succeeded: Collection[str]) -> list[str]:
    """Return the tools that make a claim true among those that have succeeded."""
    tools = list_tools(claim)
    return [name for name in succeeded if name in tools or (TOOL_PREFIX in tools and name.startswith(TOOL_PREFIX))]


def find_statements(
    sentence: str, settings: AgentSettings, succeeded: Collection[str], history: Sequence[Message]
) -> list[Finding]:
    """Return what an agent must not say of a sentence, what is certain first.

    `succeeded` are the tools that have returned success, and `history` is what the agent was given.
    """
    text = _normalize(sentence)
    found = [Finding("phrase", phrase) for phrase in settings.banned_phrases if _compile_phrase(phrase).search(text)]
    untrue = [claim for claim in settings.claims if not list_true(claim, succeeded)]
    if untrue:
        statement = _Statement(text, history, get_base_language(settings.stt_language))
        weights = {claim.name: statement.weigh_claim(claim) for claim in untrue}
        if "certain" in weights.values() and statement.makes_one_of(settings.claims, {claim.name for claim in untrue}):
            weights = {name: _least(weight, "doubtful") for name, weight in weights.items()}
        found += [Finding("claim", name) for name, weight in weights.items() if weight == "certain"]
        asked = [name for name, weight in weights.items() if weight == "doubtful"]
        if not asked and len(untrue) == len(settings.claims) and statement.weigh_words(ANYTHING) != "nothing":
            asked = [name for name in weights if name not in FIGURES]
        if asked:
            claims = "; or ".join(DESCRIPTIONS.get(name, f"{name.replace('_', ' ')}") for name in asked)
            found.append(Finding("claim", asked[0], CLAIM_QUESTION.format(claims=claims)))
    for topic in settings.banned_topics:
        if any(_compile_phrase(phrase).search(text) for phrase in topic.keywords or [topic.name]):
            found.append(Finding("topic", topic.name, TOPIC_QUESTION.format(topic=topic.name)))
    return found


def is_override(words: str) -> bool:
    """Return whether words are one of the usual attempts to override an agent's instructions."""
    text = _normalize(words)
    return any(language.patterns["overrides"].search(text) for language in _compile().values())


def get_sentence(language: str, name: Literal["unsure", "refusal"]) -> str:
    """Return a sentence that an agent says instead, in a language (BCP 47) or else in English."""
    languages = _load()
    return str(languages.get(get_base_language(language), languages["en"])[name])


# --- the languages ---


@cache
def _load() -> Mapping[str, Mapping[str, object]]:
    return tomllib.loads((files(__package__) / "claims.toml").read_text("utf-8"))


@cache
def _compile() -> Mapping[str, _Language]:
    """Compile the patterns of the languages that have them."""
    languages = {}
    for name, data in _load().items():
        words = data.get("words")
        if isinstance(words, dict):
            claims = {
                claim: {key: _join(lines, words) for key, lines in parts.items()}
                for claim, parts in data.items()
                if isinstance(parts, dict) and claim != "words"
            }
            patterns = {key: _join(lines, words) for key, lines in data.items() if isinstance(lines, str)}
            languages[name] = _Language(patterns, claims)
    return languages


def _join(lines: str, words: Mapping[str, str]) -> re.Pattern[str]:
    """Compile the alternatives in each line, with the patterns of `@words`. Gaps are bounded, so that a long text takes
    time in proportion to its length.
    """

    def fill(text: str) -> str:
        filled = re.sub("@([a-z_]+)", lambda match: fill(words[match[1]]), text)
        return filled.replace("[^,;]*", "[^,;]{0,80}").replace("[^.?!]*", "[^.?!]{0,40}")

    return re.compile("|".join(f"(?:{fill(line)})" for line in lines.strip().splitlines()))


# --- a sentence ---


def _normalize(text: str) -> str:
    """Return a text in lower case, with straight apostrophes and single spaces, without emphasis."""
    return " ".join(re.sub("[’ʼ`´]", "'", text).lower().replace("*", "").split())


@lru_cache(maxsize=10_000)
def _compile_phrase(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, _normalize(phrase).split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _list_clauses(text: str, language: _Language) -> list[_Clause]:
    patterns = language.patterns
    parts = (part.strip(" .!?¿¡\"'()…") for part in CLAUSE_END.split(patterns["idioms"].sub("", text)))
    clauses = [piece for part in parts for piece in wrap(part, LONGEST_CLAUSE)] or [""]
    asks = text.rstrip("\"' )").endswith("?")
    has_tag = asks and len(clauses) > 1 and len(clauses[-1].split()) <= TAG_WORDS
    is_asked = asks and (patterns["asks"].match(clauses[0]) or patterns["checks"].search(clauses[-1])) is not None
    is_hedged = follows_condition = False
    found = []
    for place, clause in enumerate(clauses):
        is_condition = patterns["conditions"].match(clause) is not None
        inherits = is_hedged and patterns["inherits"].match(clause) is not None
        is_question = is_asked or (asks and not has_tag and place == len(clauses) - 1)
        is_nothing = is_question or is_condition or inherits or follows_condition
        found.append(_Clause(clause, "nothing" if is_nothing else "doubtful" if has_tag else "certain"))
        follows_condition = is_condition
        is_hedged = inherits or patterns["hedges"].search(clause) is not None
    return found


def _weigh(clause: _Clause, match: re.Match[str], language: _Language) -> Weight:
    """Return what a match in a clause weighs, by the words around it."""
    hedges = language.patterns["hedges"]
    begin = max((found.end() for found in CONJUNCTION.finditer(clause.text, 0, match.start())), default=0)
    is_hedged = hedges.search(clause.text, begin, match.end()) is not None
    if is_hedged or language.patterns["afterwards"].search(clause.text, match.end()):
        return "nothing"
    return _least(clause.weight, "doubtful") if hedges.search(clause.text, 0, begin) else clause.weight


def _least(*weights: Weight) -> Weight:
    return min(weights, key=WEIGHTS.index)


def _most(*weights: Weight) -> Weight:
    return max(weights, key=WEIGHTS.index)


class _Statement:
    """A normalized sentence, with its clauses as each language divides and hedges them."""

    def __init__(self, text: str, history: Sequence[Message], base: str) -> None:
        languages = _compile()
        self._text, self._history = text, history
        self._base = base if base in languages else "en"
        self._language = languages[self._base]
        self._clauses = {name: _list_clauses(text, language) for name, language in languages.items()}

    def weigh_claim(self, claim: Claim) -> Weight:
        """Return whether the sentence makes a claim."""
        phrases = [self._search(_compile_phrase(phrase), self._base) for phrase in claim.phrases]
        if claim.name in FIGURES:
            return _most(self._weigh_figures(claim.name), *phrases)
        return _most(self.weigh_words(claim.name), "doubtful" if self._affirms(claim.name) else "nothing", *phrases)

    def makes_one_of(self, claims: Iterable[Claim], untrue: Collection[str]) -> bool:
        """Return whether the sentence makes a claim that is true, which may be all that it says."""
        return any(claim.name not in untrue and self.weigh_claim(claim) == "certain" for claim in claims)

    def weigh_words(self, name: str) -> Weight:
        """Return whether the words of the sentence make a built-in claim in one of the languages."""
        weights: list[Weight] = ["nothing"]
        for base, language in _compile().items():
            patterns = language.claims.get(name, {})
            for kind in patterns.keys() & {"said", "despite"}:
                weights.append(self._search(patterns[kind], base, despite=kind == "despite"))
            if "perhaps" in patterns:
                weights.append(_least("doubtful", self._search(patterns["perhaps"], base)))
        return _most(*weights)

    def _search(self, pattern: re.Pattern[str], base: str, *, despite: bool = False) -> Weight:
        """Return what a pattern weighs in the clauses; `despite` the words around it."""
        found: Weight = "nothing"
        for clause in self._clauses[base]:
            if clause.weight != "nothing" and (match := pattern.search(clause.text)) is not None:
                found = _most(found, clause.weight if despite else _weigh(clause, match, _compile()[base]))
        return found

    def _affirms(self, name: str) -> bool:
        """Return whether the sentence is a short yes to a caller who has asked about a claim."""
        asked = _normalize(next((each.content for each in reversed(self._history) if each.role == "user"), ""))
        for language in _compile().values():
            yes, pattern = language.patterns["yes"].match(self._text), language.claims.get(name, {}).get("asked")
            if yes and len(self._text[yes.end() :].split()) <= YES_WORDS and pattern and pattern.search(asked):
                return True
        return False

    # --- figures ---

    def _weigh_figures(self, name: str) -> Weight:
        """Return whether the sentence states a price, or an opening hour, that is in nothing which the agent was given.

        One that only the other side has named, or that may be reported, is doubtful.
        """
        patterns, spoken = self._language.patterns, write_digits(self._text, self._base)
        may_repeat = patterns["reports"].search(self._text) is not None
        if spoken.endswith("?") and (may_repeat or patterns["asks"].match(self._text)):
            return "nothing"
        if name == "price" and patterns["returned"].search(self._text):
            return "nothing"
        find = self._are_prices_known if name == "price" else self._are_hours_known
        if find(spoken, lambda message: message.role != "user"):
            return "nothing"
        is_said = find(spoken, lambda message: message.role == "user")
        return "doubtful" if is_said or may_repeat else "certain"

    def _are_prices_known(self, spoken: str, choose: Callable[[Message], bool]) -> bool:
        """Return whether all amounts of money are in the messages that are chosen."""
        patterns, languages = self._language.patterns, _compile().values()
        prices = list_prices(spoken, patterns["currency"].pattern, patterns["cents"].pattern)
        if not prices and any(each.patterns["free"].search(self._text) for each in languages):
            return any(each.patterns["free"].search(line) for each in languages for line in self._list_lines(choose))
        known = set[Decimal]()
        for line in self._list_lines(choose) if prices else ():
            known |= list_numbers(line)
            if prices <= known:
                return True
        return not prices

    def _are_hours_known(self, spoken: str, choose: Callable[[Message], bool]) -> bool:
        """Return whether all times of a sentence about opening hours are in the messages that are chosen."""
        patterns = [each.patterns["hours"] for each in _compile().values()]
        times = list_times(spoken) if any(pattern.search(spoken) for pattern in patterns) else []
        known = list[TimeOfDay]()
        for line in self._list_lines(choose) if times else ():
            if has_times(line) or any(pattern.search(line) for pattern in patterns):
                known += list_times(line)
                if all(time.fits(known) for time in times):
                    return True
        return not times

    def _list_lines(self, choose: Callable[[Message], bool]) -> Iterator[str]:
        """List the lines of messages, or of their JSON; as they are, and then with figures, which takes longer."""
        lines = [
            _normalize(line)
            for message in filter(choose, self._history)
            for line in message.content.replace("\\n", "\n").splitlines()
        ]
        yield from lines
        yield from (write_digits(line, self._base) for line in lines)
