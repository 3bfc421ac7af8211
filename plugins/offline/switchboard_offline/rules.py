"""Rules of a `scripted` agent, written in its prompt.

    When the caller says "opening hours" or "when are you open": say "We are open from nine to five."
    When the caller says "a human": say "I am connecting you." and call transfer_call(to_number="+15550100002")
    When the caller says "goodbye": say "Goodbye!" and call end_call
    Otherwise: say "I can tell you our opening hours."

Case and punctuation are ignored. The rule with the most matching words wins. All other lines of the prompt are
the agent's knowledge.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from switchboard.plugin_sdk import JsonObject

WHEN = re.compile(
    r"^\s*(?:[-*]\s*)?when the (?:caller|agent|other side) says (?P<phrases>.+?):\s*(?P<actions>(?:say|call)\b.*)$",
    re.IGNORECASE,
)
OTHERWISE = re.compile(r"^\s*(?:[-*]\s*)?otherwise:\s*(?P<actions>(?:say|call)\b.*)$", re.IGNORECASE)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|“([^”]*)”')
SAY = re.compile(r'\bsay\s+(?:"((?:[^"\\]|\\.)*)"|“([^”]*)”)', re.IGNORECASE)
CALL = re.compile(r"\bcall\s+(?P<name>[A-Za-z_]\w*)\s*(?:\((?P<arguments>[^)]*)\))?", re.IGNORECASE)
ARGUMENT = re.compile(r'(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false)')
HEADING_WORDS = 8
COMMON = frozenset((
    "a", "an", "and", "are", "can", "could", "do", "does", "for", "have", "how", "i", "in", "is", "it", "me", "my",
    "of", "on", "or", "please", "so", "that", "the", "this", "to", "was", "what", "when", "where", "who", "will",
    "with", "you", "your",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool to call."""

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptedRule:
    """Text to say and tools to call when one of the phrases was said. Without phrases, the fallback rule."""

    phrases: tuple[str, ...]
    say: str
    calls: tuple[ScriptedCall, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed prompt: its rules, its fallback rule, and the sentences of all other lines."""

    rules: tuple[ScriptedRule, ...]
    otherwise: ScriptedRule | None
    sentences: tuple[str, ...]


def split_into_words(text: str) -> list[str]:
    """Return the words of a text, in lower case and without punctuation."""
    return re.findall(r"[\w']+", text.lower().replace("’", "'"))


def extract_keywords(text: str) -> set[str]:
    """Return the significant words of a text, without their endings."""
    return {
        re.sub(r"(ing|ed|es|s)$", "", word) for word in split_into_words(text) if word not in COMMON and len(word) > 1
    }


def parse_prompt(prompt: str) -> Script:
    """Parse a prompt. A line that is not a rule is knowledge."""
    rules, otherwise, rest = [], None, []
    for line in prompt.splitlines():
        if (match := WHEN.match(line)) is not None:
            phrases = tuple(straight or curly for straight, curly in QUOTED.findall(match["phrases"]))
            rules.append(_parse_rule(phrases, match["actions"]))
        elif (match := OTHERWISE.match(line)) is not None:
            otherwise = _parse_rule((), match["actions"])
        else:
            rest.append(line)
    sentences = re.split(r"(?<=[.!?])\s+|\n+", "\n".join(rest))
    return Script(tuple(rules), otherwise, tuple(sentence.strip() for sentence in sentences if sentence.strip()))


def find_best_rule(rules: Sequence[ScriptedRule], said: str) -> ScriptedRule | None:
    """Return the best matching rule: all words of a phrase were said, or most of its keywords."""
    scored = [(_score(phrase, said), index) for index, rule in enumerate(rules) for phrase in rule.phrases]
    score, index = max(scored, key=lambda entry: (entry[0], -entry[1]), default=(0.0, 0))
    return rules[index] if score > 0 else None


def find_best_sentence(sentences: Sequence[str], said: str) -> str | None:
    """Return the sentence that shares the most keywords with the utterance."""
    return _find_best([(sentence, "") for sentence in sentences], said)


def find_best_passage_sentence(passages: str, said: str) -> str | None:
    """Return the sentence of a knowledge base's passages that shares the most keywords with the utterance, counting
    those of the headings above it, which are not spoken.

    Passages have an empty line between them and between their paragraphs; the first paragraph of one below headings is
    their path, such as `Bakery > Opening hours`.
    """
    paragraphs = [text.strip() for text in re.split(r"\n\s*\n", passages) if text.strip()]
    below, alone, heading = [], [], ""
    for number, paragraph in enumerate(paragraphs, 1):
        if not _is_heading(paragraph):
            below += [(sentence, heading) for sentence in parse_prompt(paragraph).sentences]
        elif " > " in paragraph or number < len(paragraphs):
            heading = paragraph
        else:
            alone = [(paragraph, "")]  # a short document without a full stop
    return _find_best(below, said) or _find_best(alone, said)


def _is_heading(paragraph: str) -> bool:
    """Return whether a paragraph looks like a heading or a path of headings: a line without the marks of sentences and
    of list entries.
    """
    if "\n" in paragraph:
        return False
    is_short = len(paragraph.split()) <= HEADING_WORDS
    return " > " in paragraph or (is_short and not re.search(r"[.!?:;,\d]", paragraph))


def _find_best(sentences: Sequence[tuple[str, str]], said: str) -> str | None:
    """Return the sentence, of pairs of a sentence and its heading, that shares the most keywords with the utterance."""
    wanted = extract_keywords(said)
    keywords = [(extract_keywords(sentence), extract_keywords(heading)) for sentence, heading in sentences]
    scored = [(len(wanted & (own | above)), len(wanted & own), -index) for index, (own, above) in enumerate(keywords)]
    shared, _, index = max(scored, default=(0, 0, 0))
    return sentences[-index][0] if shared > 0 else None


def _score(phrase: str, said: str) -> float:
    """Score a phrase: highest if its words were said in a row, lower if three quarters of its keywords were said."""
    wanted, heard = split_into_words(phrase), split_into_words(said)
    if not wanted:
        return 0.0
    if f" {' '.join(wanted)} " in f" {' '.join(heard)} ":
        return 2.0 + len(wanted)
    key, present = extract_keywords(phrase), extract_keywords(said)
    if key and len(key & present) >= 0.75 * len(key):
        return 1.0 + len(key & present) / len(key)
    return 0.0


def _parse_rule(phrases: tuple[str, ...], actions: str) -> ScriptedRule:
    said = " ".join((straight or curly).replace('\\"', '"') for straight, curly in SAY.findall(actions))
    calls = []
    for match in CALL.finditer(SAY.sub(" ", actions)):
        arguments = {name: json.loads(value) for name, value in ARGUMENT.findall(match["arguments"] or "")}
        calls.append(ScriptedCall(match["name"], arguments))
    return ScriptedRule(phrases, said, tuple(calls))
