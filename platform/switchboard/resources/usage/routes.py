"""Endpoints of usage."""

from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.resources.usage import queries as usage
from switchboard.resources.usage.schemas import HistoryQuery, UsageHistoryOut, UsageOut

blueprint = ApiBlueprint("usage", __name__, tags={"usage": "Usage and costs, by month."})


@blueprint.get("/v1/usage")
@endpoint(scope="billing:read", replica=True)
async def get_usage(session: ReadSession) -> UsageOut:
    """Get the current month's usage.

    Months begin and end in the organization's time zone. `cost` covers all charges: calls, text messages, and phone
    numbers.
    """
    return (await usage.summarize_months(session, 1))[0]


@blueprint.get("/v1/usage/history")
@endpoint(scope="billing:read", replica=True)
async def get_usage_history(session: ReadSession, query: HistoryQuery) -> UsageHistoryOut:
    """Get usage by month.

    Newest first; months without usage are zeros.
    """
    return UsageHistoryOut(items=await usage.summarize_months(session, query.months))
