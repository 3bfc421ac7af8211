"""Usage and costs by month, the balance, and the ledger."""

from switchboard.apps.dashboard.blueprint import page
from switchboard.apps.dashboard.ui import charts
from switchboard.apps.dashboard.ui.formats import dollars, month
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.billing import ledger
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.identity.service import get_policy
from switchboard.resources.usage import queries as usage

MONTHS = 12


@page("/dashboard/usage", role="owner")
async def usage_page(session: ReadSession, viewer: Viewer, query: PageQuery) -> str:
    """Show usage by month, the balance, and the ledger."""
    months = await usage.summarize_months(session, MONTHS)
    balance, _ = await ledger.get_account_balance(session)
    return await render(
        "dashboard/usage/usage.html",
        months=months,
        balance=balance,
        policy=await get_policy(session, viewer.organization_id),
        costs=charts.build_shares([(month(one.period), float(one.cost), "accent") for one in months], dollars),
        entries=await load_list(session, session.select(LedgerEntry), query),
    )
