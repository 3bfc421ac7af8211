"""API schema of the balance."""

from typing import Literal

from switchboard.foundation.web.schemas import Answer, Dollars, Moment


class BalanceOut(Answer):
    """An organization's balance."""

    balance: Dollars
    currency: Literal["USD"] = "USD"
    billing_mode: Literal["prepaid", "postpaid"]
    updated_at: Moment
