"""The balance on the wire (api-decisions, "Objects")."""

from typing import Literal

from switchboard.foundation.web.schemas import Answer, Dollars, Moment


class BalanceOut(Answer):
    """What an organization has left, or owes."""

    balance: Dollars
    currency: Literal["USD"] = "USD"
    billing_mode: Literal["prepaid", "postpaid"]
    updated_at: Moment
