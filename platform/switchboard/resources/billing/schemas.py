"""API schema of the balance."""

from typing import Literal

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Dollars, Moment


class BalanceOut(Answer):
    """An organization's balance."""

    balance: Dollars = Field(description="US dollars; negative if more was used than paid.")
    currency: Literal["USD"] = Field("USD", description="Always `USD`.")
    billing_mode: Literal["prepaid", "postpaid"] = Field(
        description="`prepaid` organizations need a balance to place calls and send text messages."
    )
    updated_at: Moment = Field(description="Time of the last change.")
