"""The repository checks its own language: docs/contributing/style.md."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from switchboard.plugin_sdk.hooks import Hooks

from tests.fixtures.servers import REPOSITORY
from tests.house.sources import Source, collect_from
from tests.house.test_docs import list_files

MAX_LINE_LENGTH = 120
QUESTION_WORDS = ("how", "what", "when", "where", "whether", "which", "who", "whom", "whose", "why")
OPENING_QUESTION = re.compile(rf"({'|'.join(QUESTION_WORDS)})\b", re.IGNORECASE)
# Words of the dialect that this code base once had.
BANNED_WORDS = ("thereof", "whom", "whomever", "doings", "tellings", "wherefrom", "anew", "whosoever")
# Turns of phrase of that dialect: "Redis is away", "a cost that is none".
BANNED_PHRASES = (
    r"\b(is|are|stays?) away\b",
    r"(?<!there )\b(is|are|was|were) (?-i:none)\b(?!`| of)",
    r"\btold of\b",
)
BANNED = re.compile(rf"\b({'|'.join(BANNED_WORDS)})\b|{'|'.join(BANNED_PHRASES)}", re.IGNORECASE)
# Beginnings of words in British spelling. asyncio's `cancelled()` and `CancelledError` are exempt, and so is the status
# "CANCELLED" of iCalendar.
BRITISH_STEMS = (
    r"analys(e|ed|er|ers|ing)\b",
    r"(?<!\")(?<!status:)cancell(ing|ed(?!\())\b",
    r"(apolog|author|categor|custom|emphas|initial|maxim|minim|normal|optim|organ|priorit|real|recogn)is(e|ing|ation)",
    r"(serial|summar|synchron|token|util|visual)is(e|ing|ation)",
    "behaviour",
    "catalogue",
    "centre",
    "colour",
    "diall",
    "favour",
    r"grey\b",
    "honour",
    "judgement",
    "labell(?!edby)",
    "licence",
    "modelled",
    "modelling",
    "neighbour",
    r"programme\b",
    "signall",
    r"towards\b",
    "travell",
    r"whilst\b",
)
# Names that have a standard term instead (docs/glossary.md).
BANNED_NAMES = (
    "Clockwork",
    "Desk",
    "Doing",
    "Ear",
    "Floor",
    "Listener",
    "Patience",
    "Thinker",
    "TargetTold",
    "Rooms",
    "told",
    "fold",
    "tally",
)
# Words that no name has: of a class, a function, a variable, a file, a class of a style sheet, or an attribute.
BANNED_NAME_WORDS = ("desk", "desks", "room", "rooms")
WORD_OF_A_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
WORD_OF_MARKUP = re.compile(rf"(?:class|id|data-[a-z-]+)=\"[^\"]*\b({'|'.join(BANNED_NAME_WORDS)})\b")
# A function is named by a verb in the imperative: these end in -ed and are verbs.
VERBS_IN_ED = ("embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed")
IRREGULAR_PARTICIPLES = (
    "begun",
    "bought",
    "broken",
    "built",
    "drawn",
    "driven",
    "found",
    "given",
    "gone",
    "heard",
    "held",
    "kept",
    "known",
    "left",
    "lent",
    "lost",
    "made",
    "met",
    "paid",
    "rung",
    "said",
    "seen",
    "sent",
    "shown",
    "sold",
    "sought",
    "spoken",
    "sung",
    "taken",
    "thought",
    "told",
    "written",
)
# Modules whose functions nothing imports by name: they are registered by a decorator or found by a framework.
ENTRY_POINTS = re.compile(
    r"/routes\.py$|/apps/dashboard/pages/|/apps/cli/|/migrations/versions/|/parser_process\.py$|/launch\.py$"
)
# Nodes that have a docstring or give a name.
NAMING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Name, ast.Attribute, ast.arg)
# Names that a framework looks for in several modules: pluggy its hooks, the shell its entry points.
SHARED_NAMES = {"main", *(name for name in vars(Hooks) if not name.startswith("_"))}


@collect_from()
def find_faults(source: Source) -> Iterator[str]:
    """Yield the places of docstrings and names that are not plain."""
    rules = [find_docstring_fault, find_name_fault, find_banned_name]
    # The tests' functions are named after behavior, and a few fixtures after a state.
    if not source.name.startswith("tests/"):
        rules.append(find_function_name_fault)
    for node in source.nodes:
        if isinstance(node, NAMING):
            for find_fault in rules:
                if fault := find_fault(node):
                    yield f"{source.name}:{getattr(node, 'lineno', 1)}: {fault}"


def test_docstrings_and_names_are_plain() -> None:
    assert find_faults() == []


def find_docstring_fault(node: ast.AST) -> str | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node, clean=False) or ""
        if OPENING_QUESTION.match(docstring.strip()):
            return f"{docstring[:60]!r}: begin with a verb or a noun phrase"
    return None


def find_name_fault(node: ast.AST) -> str | None:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name in BANNED_NAMES:
                return f"{name} has a standard term"
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            pass
        case _:
            return None
    return f"{name}: name the thing itself" if name.strip("_") in QUESTION_WORDS else None


def find_banned_name(node: ast.AST) -> str | None:
    match node:
        case ast.FunctionDef(name="of") | ast.AsyncFunctionDef(name="of"):
            return "name what the function makes: `from_row`, `build`"
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            pass
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            pass
        case _:
            return None
    return f"{name} has a standard term" if has_banned_word(name) else None


def has_banned_word(name: str) -> bool:
    return any(word.lower() in BANNED_NAME_WORDS for word in WORD_OF_A_NAME.findall(name))


def test_files_and_markup_have_the_standard_terms() -> None:
    for path in list_files():
        assert not has_banned_word(path.stem), f"{path} has a standard term"
    for path in list_files("*.css", "*.html"):
        found = WORD_OF_MARKUP.search(text := path.read_text())
        assert found is None, f"{path}: {found[0]!r} has a standard term"
        assert path.suffix != ".css" or not re.search(r"\.(desk|room)\b", text), (
            f"{path} has a class with a standard term"
        )


def find_function_name_fault(node: ast.AST) -> str | None:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_property(node):
        return None
    name = node.name.strip("_")
    participle = name in IRREGULAR_PARTICIPLES or (name.endswith("ed") and name not in VERBS_IN_ED)
    return f"{node.name}: name a function by a verb" if participle and "_" not in name else None


def find_banned_words(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := BANNED.search(line):
            yield f"{number}: write {found[0]!r} in plain English"


@collect_from("platform", "plugins", "bench")
def find_banned_words_of_code(source: Source) -> Iterator[str]:
    yield from (f"{source.name}:{fault}" for fault in find_banned_words(source.text))


def test_banned_words_are_not_written() -> None:
    assert find_banned_words_of_code() == []
    assert [f"{path}:{fault}" for path in documents() for fault in find_banned_words(path.read_text())] == []


def test_spelling_is_american() -> None:
    british = re.compile(rf"(?<![a-z])({'|'.join(BRITISH_STEMS)})")
    for path in list_files("*.py", "*.md", "*.js", "*.mjs", "*.html", "*.toml"):
        # recordings.toml is in other languages, and calcom_server.py has the values of a vendor's API.
        if path == Path(__file__) or path.name in ("style.md", "recordings.toml", "calcom_server.py"):
            continue
        found = british.search(text := path.read_text().lower())
        assert found is None, f"{path}:{text.count(chr(10), 0, found.start()) + 1}: write {found[0]!r} as Americans do"


@collect_from("platform", "plugins")
def list_public_names(source: Source) -> Iterator[tuple[str, str]]:
    """Yield each public name of a module, and the module."""
    if not ("/tests/" in source.name or "/template/" in source.name or ENTRY_POINTS.search(source.name)):
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                yield node.name, source.name


def test_public_names_are_defined_in_one_module() -> None:
    defined = defaultdict(set)
    for name, module in list_public_names():
        defined[name].add(module)
    shared = {name: modules for name, modules in defined.items() if len(modules) > 1 and name not in SHARED_NAMES}
    assert not shared, f"one name for one thing: {shared}"


@collect_from()
def find_wide_lines(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > MAX_LINE_LENGTH:
            yield f"{source.name}:{number} has {len(line)} columns"


def test_lines_stay_within_their_width() -> None:
    assert find_wide_lines() == []


def documents() -> Iterator[Path]:
    """Yield the pages, except the one that quotes the dialect."""
    yield from REPOSITORY.glob("*.md")
    for root in ("docs", "plugins", "tenants"):
        yield from (path for path in (REPOSITORY / root).rglob("*.md") if path.name != "style.md")


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(decorator, ast.Name | ast.Attribute) and ast.unparse(decorator).endswith(("property", ".setter"))
        for decorator in node.decorator_list
    )
