"""Endpoints of analytics."""

from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.resources.analytics import queries as analytics
from switchboard.resources.analytics.schemas import DaysOut, DaysQuery, OverviewOut

blueprint = ApiBlueprint("analytics", __name__, tags={"analytics": "Call statistics."})


@blueprint.get("/v1/analytics/overview")
@endpoint(scope="analytics:read", replica=True)
async def get_overview(session: ReadSession, query: DaysQuery) -> OverviewOut:
    """Get aggregate call, cost, and sentiment figures for a period."""
    return await analytics.summarize_calls(session, query.days)


@blueprint.get("/v1/analytics/calls-over-time")
@endpoint(scope="analytics:read", replica=True)
async def get_calls_over_time(session: ReadSession, query: DaysQuery) -> DaysOut:
    """Get the calls of each day of a period."""
    return DaysOut(items=await analytics.count_calls_by_day(session, query.days))
