"""Statements that read a list in batches, newest first."""

from typing import Final, TypeVar

from pydantic import BaseModel
from sqlmodel import col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, TenantTable
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.web.paging import select_after
from switchboard.resources.exports.schemas import PeriodExportQuery
from switchboard.resources.sms.models import SmsMessage

BATCH: Final = 200
Row = TypeVar("Row", bound=TenantTable)


async def read_batch_after(
    session: ReadSession, rows: SelectOfScalar[Row], after: TenantTable | None, model: type[BaseModel]
) -> tuple[list[BaseModel], Row | None]:
    """Return the next rows of a select as a model has them, and the last of them; None if no row follows."""
    found = (await session.exec(select_after(rows, after).limit(BATCH))).all()
    await open_content(session, *found)
    return [model.model_validate(row) for row in found], found[-1] if len(found) == BATCH else None


def select_messages_of_period(session: ReadSession, period: PeriodExportQuery) -> SelectOfScalar[SmsMessage]:
    """Select the text messages of a period."""
    rows = session.select(SmsMessage)
    if period.created_after is not None:
        rows = rows.where(col(SmsMessage.created_at) >= period.created_after)
    if period.created_before is not None:
        rows = rows.where(col(SmsMessage.created_at) < period.created_before)
    return rows
