"""Rows that are inserted without objects of their tables."""

from uuid import uuid4

import pytest
from switchboard.foundation.database import NewRow
from switchboard.resources.contacts.models import Contact


def test_a_row_has_the_defaults_of_its_table() -> None:
    contact = Contact(organization_id=uuid4(), phone_number="+15550100001")
    row = NewRow.build(Contact, organization_id=contact.organization_id, phone_number=contact.phone_number)
    given = {"id", "created_at", "updated_at"}
    assert {**row.values, **{name: getattr(contact, name) for name in given}} == contact.model_dump()
    assert row.values["id"] != NewRow.build(Contact, **{**row.values, "id": uuid4()}).values["id"]


@pytest.mark.parametrize("values", [{"phone_number": "+15550100001"}, {"organization_id": uuid4(), "phone": "x"}])
def test_a_row_with_other_columns_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Contact has other columns"):
        NewRow.build(Contact, **values)
