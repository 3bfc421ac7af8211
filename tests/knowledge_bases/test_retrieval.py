"""Retrieval quality with the offline embedding: prose by paraphrased questions, and near-identical records by names
and numbers.
"""

import asyncio
import random
from pathlib import Path

import pytest
import pytest_asyncio
from switchboard.plugin_sdk import EmbeddingProvider, VectorStore
from switchboard.resources.knowledge_bases.schemas import PassageOut
from switchboard.resources.knowledge_bases.search import PassageSearch
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller

PROSE = Path(__file__).parent / "prose"
PARAPHRASES = [
    ("a gloomy man who goes on voyages to cure his low spirits", "moby_dick"),
    ("a mother excited that a rich bachelor is moving in nearby", "pride_and_prejudice"),
    ("a paradoxical era full of contradictions, both splendid and terrible", "two_cities"),
    ("How did the variety of living species come about?", "origin_of_species"),
    ("How old must one be to be elected to the upper chamber of parliament?", "constitution"),
    ("grievances that justify breaking away from a monarch", "declaration"),
    ("a speech honoring fallen soldiers at a cemetery", "gettysburg"),
    ("a bored girl follows an animal that checks the time", "alice"),
    ("the detective admired a single lady, though he never loved", "scandal_in_bohemia"),
    ("a scientist brings a corpse to life and is horrified by it", "frankenstein"),
    ("railway journey through eastern Europe with a spicy poultry meal", "dracula"),
    ("leaving society to dwell in a self-made cabin and seek what matters", "walden"),
    ("aliens from another planet secretly observe humanity and plan to invade", "war_of_the_worlds"),
    ("a lad who cannot bear to be brought up properly by the lady who adopted him", "huckleberry_finn"),
    ("a miser so chilly that nobody greets him and no poor person asks him for alms", "christmas_carol"),
    ("an old mariner with a scar on his face moves into a guesthouse", "treasure_island"),
    ("a child's tiny farmhouse on dry plains, with a shelter from tornadoes", "wizard_of_oz"),
    ("a pet on a Californian estate, in the days of the gold rush", "call_of_the_wild"),
    ("a child hides behind a curtain to read because of bad weather", "jane_eyre"),
    ("deceive your opponents about your strength and position", "art_of_war"),
    ("a murderer insists on being sane, and was disturbed by somebody's gaze", "tell_tale_heart"),
    ("how the universe and dry continents were made by a deity", "genesis"),
    ("a decapitated ghost riding at midnight", "sleepy_hollow"),
]
BEGINNINGS = [
    "Okan",
    "Lindq",
    "March",
    "Tanak",
    "O'Har",
    "Schreib",
    "Nowick",
    "Delacr",
    "Haug",
    "Petrov",
    "Adeyem",
    "Castell",
]
ENDINGS = ["or", "vist", "etti", "aro", "an", "er", "ska", "oix", "en", "ic"]
TOWNS = ["Leeds", "Bergen", "Lucca", "Osaka", "Cork", "Mainz", "Gdynia", "Nantes", "Varna", "Ibadan"]
PRODUCTS = ["rye loaves", "oat biscuits", "almond tarts", "walnut rolls", "seed crackers"]


def create_records() -> list[tuple[str, str, str]]:
    """Build records: order number, name, and text."""
    chance = random.Random(7)
    numbers = chance.sample(range(10_000, 99_999), 120)
    names = chance.sample([beginning + ending for beginning in BEGINNINGS for ending in ENDINGS], 120)
    return [
        (
            str(number),
            name,
            (
                f"Order {number} for {name}: {chance.randint(2, 90)} boxes of {chance.choice(PRODUCTS)}, to be sent to "
                f"{chance.choice(TOWNS)} by cart."
            ),
        )
        for number, name in zip(numbers, names, strict=True)
    ]


@pytest_asyncio.fixture
async def library(caller: Caller) -> Caller:
    """An organization with the prose in one knowledge base, and the records, ten per document, in another."""
    bases = [(await caller.post("/v1/knowledge-bases", {"name": name})).json["id"] for name in ("Prose", "Orders")]
    texts = [(bases[0], path.name, path.read_text()) for path in sorted(PROSE.glob("*.txt"))]
    lines = [text for _, _, text in create_records()]
    texts += [
        (bases[1], f"orders-{start}.txt", "\n\n".join(lines[start : start + 10])) for start in range(0, len(lines), 10)
    ]
    adding = asyncio.Semaphore(4)

    async def add(base: object, filename: str, content: str) -> None:
        async with adding:
            response = await caller.post(
                f"/v1/knowledge-bases/{base}/documents", {"filename": filename, "content": content}
            )
        assert response.json["status"] == "ready", response.body

    await asyncio.gather(*(add(*text) for text in texts))
    return caller


async def find_by_vector(runtime: Runtime, caller: Caller, query: str) -> str:
    """Return the best passage by vectors alone."""
    async with runtime.providers.use(caller.organization_id, EmbeddingProvider) as provider:
        vector = (await provider.embed([query], purpose="query")).vectors[0]
    async with runtime.providers.use(caller.organization_id, VectorStore) as store:
        model = f"minilm/all-MiniLM-L6-v2/{len(vector)}"
        matches = await store.search(
            caller.organization_id, model, text="", vector=vector, knowledge_base_ids=None, limit=1
        )
    return matches[0].text


async def test_paraphrases_find_their_document_and_words_beat_vectors_for_names_and_numbers(
    runtime: Runtime, library: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    async def find_best(query: str) -> PassageOut:
        search = PassageSearch(runtime.database, runtime.providers)
        return (await search.search_passages(library.organization_id, query, limit=1))[0]

    missed = [query for query, document in PARAPHRASES if (await find_best(query)).filename != f"{document}.txt"]
    questions = [(f"What was ordered under {number}?", text) for number, _, text in create_records()[::6]]
    questions += [(f"Where does {name}'s order go?", text) for _, name, text in create_records()[3::6]]
    combined_hits = sum([text in (await find_best(query)).content for query, text in questions])
    vector_hits = sum([text in await find_by_vector(runtime, library, query) for query, text in questions])
    with capsys.disabled():
        print(  # noqa: T201 - the figures are the point
            f"\nparaphrases: {len(PARAPHRASES) - len(missed)} of {len(PARAPHRASES)} first; "
            f"names and numbers: {combined_hits} of {len(questions)} with words, {vector_hits} by vectors alone; "
            f"missed: {missed}"
        )
    assert len(missed) <= 3
    assert combined_hits >= 0.95 * len(questions)
    assert vector_hits < 0.8 * combined_hits
