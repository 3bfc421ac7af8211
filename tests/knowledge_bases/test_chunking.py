"""Chunking: along the structure, none too large, nothing lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from switchboard.resources.knowledge_bases.chunking import SIZE, split_passages

SENTENCE = "The quick brown fox number {} jumps over the lazy dog by the river. "


def test_a_section_is_a_passage_under_its_headings() -> None:
    text = (
        "Before.\n\n# Bakery\n\nWelcome.\n\n## Hours ##\n\nSeven to six.\n\nNot on Sundays.\n\n## Prices\n\nRye: "
        "4\n\n# Parking\n\nBehind."
    )
    assert split_passages(text) == [
        "Before.",
        "Bakery\n\nWelcome.",
        "Bakery > Hours\n\nSeven to six.\n\nNot on Sundays.",
        "Bakery > Prices\n\nRye: 4",
        "Parking\n\nBehind.",
    ]


def test_a_heading_without_text_is_a_passage() -> None:
    assert split_passages("# Only a title") == ["Only a title"]
    assert split_passages("#hashtag is text") == ["#hashtag is text"]
    assert split_passages("# #") == ["# #"]


def test_small_paragraphs_are_joined_and_large_ones_split_between_sentences_with_overlap() -> None:
    passages = split_passages("Short.\n\n" + "".join(SENTENCE.format(number) for number in range(40)))
    assert len(passages) > 2
    assert all(len(passage) <= SIZE for passage in passages)
    assert passages[0].startswith("Short.\n\nThe quick brown fox number 0")
    for before, after in pairwise(passages):
        assert before.endswith(after.partition(". ")[0] + ".")


def test_text_without_spaces_is_split() -> None:
    passages = split_passages("x" * 5000)
    assert "".join(passages) == "x" * 5000
    assert all(len(passage) <= SIZE for passage in passages)


@pytest.mark.parametrize("text", ["", " \n\n\t", "\n"])
def test_empty_text_has_no_passages(text: str) -> None:
    assert split_passages(text) == []


@given(st.text(alphabet=st.sampled_from("ab .!?\n#。\u00a0-"), max_size=4000))
def test_passages_cover_every_letter_and_stay_within_the_size(text: str) -> None:
    passages = split_passages(text)
    assert all(passage.strip() and len(passage) <= SIZE for passage in passages)
    for letter in "ab":
        assert "".join(passages).count(letter) >= text.count(letter)
