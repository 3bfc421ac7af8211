"""The overview: statistics of recent calls."""

from datetime import date
from urllib.parse import urlencode

from quart import url_for

from switchboard.apps.dashboard.blueprint import page
from switchboard.apps.dashboard.pages.providers import NAMES, find_own_file
from switchboard.apps.dashboard.pages.setup import read_setup
from switchboard.apps.dashboard.ui import charts, turn_latencies
from switchboard.apps.dashboard.ui.charts import Series
from switchboard.apps.dashboard.ui.formats import count, dollars
from switchboard.apps.dashboard.ui.labels import ENDED, describe_value
from switchboard.apps.dashboard.ui.rendering import TONES, load_list, render
from switchboard.apps.dashboard.viewer import Viewer, is_https
from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.schemas import PageQuery
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.analytics import queries as analytics
from switchboard.resources.analytics.schemas import DayOut, DaysQuery, OverviewOut
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.queries import list_support_sessions

RECENT = 8
STEPS = {name.removesuffix("_ms"): title for name, title, _kind in turn_latencies.STEPS}


@page("/dashboard")
async def overview(
    session: ReadSession, query: DaysQuery, *, viewer: Viewer, registry: Registry, settings: Settings
) -> str:
    """Show statistics, charts, and the latest calls; in a new installation, owners also see the setup list."""
    figures = await analytics.summarize_calls(session, query.days)
    days = await analytics.count_calls_by_day(session, query.days)
    ended = await analytics.count_outcomes(session, query.days)
    # A call without a reason to end has its status.
    reasons = [_(ENDED[one.reason]) if one.reason in ENDED else describe_value(one.reason, "call") for one in ended]
    first = figures.period.first
    steps = await analytics.measure_step_latencies(session, query.days)
    return await render(
        "dashboard/overview.html",
        query=query,
        support_sessions=[one for one in await list_support_sessions(session) if one.is_active],
        setup=await read_setup(session, registry) if viewer.has_role("owner") else None,
        names=NAMES,
        file=find_own_file(settings, viewer),
        is_public=is_https(settings),
        figures=figures,
        calls_chart=_calls(days),
        cost_chart=charts.build_bar_chart(
            _("Cost per day"),
            [day.date for day in days],
            [Series(_("cost"), "accent", [float(day.cost) for day in days])],
            dollars,
            _link_day,
        ),
        outcomes=charts.build_shares(
            [(name, one.calls, TONES.get(one.reason, "calm")) for name, one in zip(reasons, ended, strict=True)],
            count,
            [_link(first, **{"ended_reason" if one.reason in ENDED else "status": one.reason}) for one in ended],
        ),
        sentiment=_sentiment(figures) if figures.total_calls else [],
        latencies=charts.build_shares(
            [(_(STEPS[step.step]), step.p50, "accent") for step in steps],
            lambda ms: f"{count(ms)} ms",
            [_link(first, status="completed") for _ in steps],
        ),
        slowest=steps[-1].p95 if steps else None,
        recent=await load_list(session, session.select(Call), PageQuery(limit=RECENT)),
    )


def _calls(days: list[DayOut]) -> charts.BarChart:
    other = [float(day.total - day.completed - day.failed) for day in days]
    series = [
        Series(_("completed"), "good", [float(day.completed) for day in days]),
        Series(_("failed"), "bad", [float(day.failed) for day in days]),
        Series(_("other"), "calm", other),
    ]
    return charts.build_bar_chart(_("Calls per day"), [day.date for day in days], series, count, _link_day)


def _link(first_day: date, **filters: str) -> str:
    """Return the address of the calls since a day."""
    return f"{url_for('dashboard.calls_page')}?{urlencode({'first_day': first_day.isoformat(), **filters})}"


def _link_day(day: date) -> str:
    return _link(day, last_day=day.isoformat())


def _sentiment(figures: OverviewOut) -> list[charts.Share]:
    names = {
        "positive": _("positive"),
        "neutral": _("neutral"),
        "negative": _("negative"),
        "unknown": _("not judged"),
    }
    return charts.build_shares(
        [(name, getattr(figures.sentiment, value), TONES.get(value, "calm")) for value, name in names.items()],
        count,
        [_link(figures.period.first, user_sentiment=value) for value in names],
    )
