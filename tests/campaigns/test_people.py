"""Contact lists as people write them."""

import pytest
from switchboard.resources.campaigns.csv_import import ColumnLayout, get_region, parse_contact_list

ADA, BOB = ("+15550100001", "Ada"), ("+15550100002", "Bob")


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("+15550100001, Ada\n+15550100002, Bob", ColumnLayout(0, 1, header=False)),
        ("Ada,+15550100001\n\nBob,+15550100002\n", ColumnLayout(1, 0, header=False)),
        (
            "\ufeffname;e-mail;Mobile\nAda;ada@example.com;+1 (555) 010-0001\nBob;;555.010.0002",
            ColumnLayout(2, 0, header=True),
        ),
        ("number\tname\r\n0015550100001\tAda\r\n15550100002\tBob\r\n", ColumnLayout(0, 1, header=True)),
        ("id|who|tel\n7|Ada|+1-555-010-0001\n8|Bob|+1 555 010 0002", ColumnLayout(2, 1, header=True)),
    ],
)
def test_columns_and_numbers_are_recognized(text: str, layout: ColumnLayout) -> None:
    contact_list = parse_contact_list(text, region="US")
    assert [(person.phone_number, person.name) for person in contact_list.people] == [ADA, BOB]
    assert contact_list.layout == layout
    assert not contact_list.faults


def test_a_chosen_column_layout_takes_precedence() -> None:
    text = "+15550100009,Ada,+15550100001\n+15550100009,Bob,+15550100002"
    contact_list = parse_contact_list(text, region=None, layout=ColumnLayout(2, 1, header=False))
    assert [(person.phone_number, person.name) for person in contact_list.people] == [ADA, BOB]
    assert len(parse_contact_list(text, region=None, layout=ColumnLayout(2, None, header=True)).people) == 1
    assert (
        parse_contact_list("+15550100001", region=None, layout=ColumnLayout(7, 9, header=False)).people[0].phone_number
        == "+15550100001"
    )


def test_each_invalid_line_is_reported_with_its_number() -> None:
    text = (
        '+15550100001,Ada\n12,Bob\n"two\nlines",+15550100002\n,Nobody\n555 0100,Short\n+15550100003 ext. 5,Ext\n'
        + f"+15550100004,{'x' * 256}"
    )
    contact_list = parse_contact_list(text, region=None, layout=ColumnLayout(0, 1, header=False))
    assert [person.phone_number for person in contact_list.people] == ["+15550100001"]
    assert [(fault.line, fault.message) for fault in contact_list.faults] == [
        (2, "12 has no country code: write it like +15550100001"),
        (3, "two\nlines has no country code: write it like +15550100001"),
        (5, "has no phone number"),
        (6, "555 0100 has no country code: write it like +15550100001"),
        (7, "+15550100003 ext. 5 is not a phone number"),
        (8, "String should have at most 255 characters"),
    ]


def test_an_unclosed_quotation_mark_loses_no_earlier_lines() -> None:
    contact_list = parse_contact_list('+15550100001,Ada\n+15550100002,"Bob\n+15550100003,Eve', region=None)
    assert [person.phone_number for person in contact_list.people] == ["+15550100001"]
    assert [(fault.line, fault.text) for fault in contact_list.faults] == [(2, '+15550100002,"Bob')]


def test_a_number_without_its_area_code_is_reported() -> None:
    contact_list = parse_contact_list("555-0100,Desk\n1 555-0100,Desk\n555 010 0001,Ada", region="US")
    assert [(person.phone_number, person.name) for person in contact_list.people] == [ADA]
    assert [fault.message for fault in contact_list.faults] == [
        "555-0100 has no area code: write it like +15550100001",
        "1 555-0100 is not a phone number",
    ]


def test_the_first_of_repeated_numbers_counts_and_an_empty_list_is_empty() -> None:
    found = parse_contact_list("+15550100001,Ada\n+1 555 010 0001,Again\n+15550100002,Bob", region=None)
    assert [(person.phone_number, person.name) for person in found.people] == [ADA, BOB]
    assert (found.repeated, found.lines) == (1, [1, 3])
    assert parse_contact_list(" \n\n", region="US").people == []


def test_a_numbers_region_is_that_of_its_country() -> None:
    assert (get_region("+15550100200"), get_region("+442071838750"), get_region("nothing")) == ("US", "GB", None)
