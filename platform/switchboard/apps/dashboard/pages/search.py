"""Search over everything: pages, actions, and rows by name, number, or id. The search dialog of each page shows the
same results.
"""

from pydantic import Field

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import page
from switchboard.apps.dashboard.search import find_everywhere
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.schemas import Query


class SearchQuery(Query):
    """Words to look for; without words, every page is found."""

    q: str = Field("", max_length=200)


@dashboard.get("/dashboard/search")
@page(query=SearchQuery)
async def search_page(session: TenantSession, viewer: Viewer, query: SearchQuery) -> str:
    """Show what the words find."""
    return await render(
        "dashboard/search/page.html", query=query, groups=await find_everywhere(session, viewer, query.q)
    )


@dashboard.get("/dashboard/search/results")
@page(query=SearchQuery)
async def search_results(session: TenantSession, viewer: Viewer, query: SearchQuery) -> str:
    """Render the results alone, for the dialog."""
    groups = await find_everywhere(session, viewer, query.q)
    return await render_part("dashboard/search/results.html", groups=groups, query=query, role="option")
