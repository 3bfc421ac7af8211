"""What was used and what it cost, month by month; the balance and its entries."""

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.billing import ledger
from switchboard.dashboard import charts
from switchboard.dashboard.blueprint import dashboard
from switchboard.dashboard.pages import page
from switchboard.dashboard.rendering import dollars, month, render, rows
from switchboard.dashboard.visitor import Visitor
from switchboard.identity.service import policy_of
from switchboard.usage import service as usage
from switchboard.web.schemas import PageQuery

MONTHS = 12


@dashboard.get("/dashboard/usage")
@page(query=PageQuery)
async def usage_page(session: AsyncSession, visitor: Visitor, query: PageQuery) -> str:
    """The months, the balance, the ledger."""
    months = await usage.months(session, MONTHS)
    balance, _ = await ledger.balance(session)
    return await render(
        "dashboard/usage/usage.html",
        months=months,
        balance=balance,
        policy=await policy_of(session, visitor.organization_id),
        costs=charts.shares([(month(one.period), float(one.cost), "accent") for one in months], dollars),
        entries=await rows(session, ledger.entries(session), query),
    )
