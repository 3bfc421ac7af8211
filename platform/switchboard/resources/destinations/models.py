"""Tables of the pauses of outbound work, and of the counts that limits compare."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import BigInteger, Numeric
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import new_id


class OutboundPause(SQLModel, table=True):
    """The last pause of an organization's calls and text messages, and the limit that caused it."""

    __tablename__ = "outbound_pause"

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    limit_name: str
    limit_value: float
    paused_at: datetime
    ends_at: datetime


class LimitCounter(SQLModel, table=True):
    """A count that limits compare, without the changes that have not been merged yet: the number and the amount of what
    has a name and is of a moment. What lasts until it ends is of the moment infinity.

    Counts of an organization, whose id is the subject: `running` calls; outbound calls `begun`, text messages sent
    (`texts`), and money `spent`, by minute; money `held`; and outbound calls that are `talking`, with each begin (1)
    and end (-1) by minute, whose amount is the seconds since 1970.

    Counts of a widget: `conversations` with their cost, by the hour of the end; calls that are `talking`, whose amount
    is the begins' seconds since 1970; and sessions that are `unannounced`, by second.
    """

    __tablename__ = "limit_counter"

    organization_id: UUID = Field(primary_key=True)
    subject_id: UUID = Field(primary_key=True)
    moment: datetime = Field(primary_key=True)
    name: str = Field(primary_key=True)
    number: int = Field(sa_type=BigInteger)
    amount: Decimal = Field(sa_type=Numeric)


class LimitCounterChange(SQLModel, table=True):
    """A change of `LimitCounter`, written by the trigger of what is counted."""

    __tablename__ = "limit_counter_change"

    organization_id: UUID = Field(primary_key=True)
    id: UUID = Field(default_factory=new_id, primary_key=True)
    subject_id: UUID
    moment: datetime
    name: str
    number: int = Field(sa_type=BigInteger)
    amount: Decimal = Field(sa_type=Numeric)
