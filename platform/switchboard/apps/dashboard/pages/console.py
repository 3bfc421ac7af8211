"""The operator console, for superadmins: processes and plugins, organizations, and users."""

from decimal import Decimal
from typing import Annotated
from uuid import UUID

from pydantic import Field
from redis.asyncio import Redis

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.console.queries import LIVE_SECONDS, ORDERS, ConsoleQueries, SortOrder
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.formats import dollars
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.apps.running_processes import list_restarts, list_running_processes
from switchboard.engine.providers import editing
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import PageQuery, RequestBody
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.billing import ledger
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.identity import sign_in, support
from switchboard.resources.identity.models import Organization, User
from switchboard.resources.identity.password_links import PasswordLinks
from switchboard.resources.identity.queries import list_members, list_support_sessions
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.usage.queries import summarize_months


@page("/dashboard/console", role="superadmin")
async def console_page(redis: Redis, registry: Registry, admission: CallAdmission, queries: ConsoleQueries) -> str:
    """Show processes, queues, failing providers, and totals."""
    return await render("dashboard/console/overview.html", **await _read_state(redis, registry, admission, queries))


@live_part("/dashboard/console/live", role="superadmin", seconds=LIVE_SECONDS)
async def console_live(redis: Redis, registry: Registry, admission: CallAdmission, queries: ConsoleQueries) -> str:
    """Render processes, queues, failing providers, and totals."""
    return await render_part("dashboard/console/state.html", **await _read_state(redis, registry, admission, queries))


@page("/dashboard/console/plugins", role="superadmin")
async def console_plugins_page(redis: Redis, registry: Registry) -> str:
    """List the installed plugins, their faults, and the processes that must be restarted for them."""
    return await render(
        "dashboard/console/plugins.html",
        plugins=sorted(registry.plugins, key=lambda plugin: plugin.name),
        restarts=await list_restarts(redis, registry),
    )


async def _read_state(
    redis: Redis, registry: Registry, admission: CallAdmission, queries: ConsoleQueries
) -> dict[str, object]:
    running = await list_running_processes(redis, registry)
    capacities = await admission.list_capacities() if running else {}
    return {
        "totals": await queries.count_all(),
        "processes": None
        if running is None
        else [(process, restart, capacities.get(process.node, (None, None))) for process, restart in running],
        "queues": await queries.list_queues(),
        "failures": await queries.list_failing_providers(),
    }


# Organizations: search, figures, balance, suspension, and support sessions.


LARGEST_CREDIT = Decimal(10_000_000)


class OrganizationQuery(PageQuery):
    """A part of a name or slug, or an id, and the order."""

    search: str = Field("", max_length=255)
    sort: SortOrder = "name"


class Credit(RequestBody):
    """An amount in US dollars that is added to the balance; a negative one is charged."""

    amount: Annotated[Decimal, Field(ge=-LARGEST_CREDIT, le=LARGEST_CREDIT, decimal_places=6)]
    note: str = Field("", max_length=255)


class ReasonForm(RequestBody):
    """A reason that the organization's users see."""

    reason: str = Field(max_length=500)


async def _read_figures(queries: ConsoleQueries, organization: Organization) -> dict[str, object]:
    """Return balance, usage of this month, live calls, and their limits."""
    async with queries.database.read(organization.id) as session:
        balance, _ = await ledger.get_account_balance(session)
        months = await summarize_months(session, 1)
    found = await queries.list_organizations(str(organization.id), "name", PageQuery(limit=1))
    live_calls, policy = found.items[0].live_calls, organization.policy
    return {"balance": balance, "month": months[0], "live_calls": live_calls, "policy": policy}


async def _read_providers(queries: ConsoleQueries, organization_id: UUID) -> dict[str, object]:
    """Return the providers with their last checks, and the failures in calls of the last hour."""
    async with queries.database.read(organization_id) as session:
        providers = await editing.list_providers(session)
    return {"providers": providers, "failures": await queries.list_failing_providers(organization_id)}


@page("/dashboard/console/organizations", role="superadmin")
async def console_organizations_page(queries: ConsoleQueries, query: OrganizationQuery) -> str:
    """List or search the organizations with their figures."""
    found = await queries.list_organizations(query.search, query.sort, query)
    return await render("dashboard/console/organizations.html", organizations=found, query=query, orders=list(ORDERS))


@live_part("/dashboard/console/organizations/live", role="superadmin", seconds=LIVE_SECONDS)
async def console_organizations_live(queries: ConsoleQueries, query: OrganizationQuery) -> str:
    found = await queries.list_organizations(query.search, query.sort, query)
    return await render_part("dashboard/console/organization_rows.html", organizations=found)


@page("/dashboard/console/organizations/<organization_id>", role="superadmin")
async def console_organization_page(organization_id: UUID, queries: ConsoleQueries, form: Form) -> str:
    """Show an organization's usage, balance, limits, prices, providers, members, and support sessions."""
    organization = await queries.get(Organization, organization_id)
    async with queries.database.read(organization_id) as session:
        people = await list_members(session)
        sessions = await list_support_sessions(session)
    return await render(
        "dashboard/console/organization.html",
        form=form,
        organization=organization,
        **await _read_figures(queries, organization),
        **await _read_providers(queries, organization_id),
        members=people,
        support_sessions=sessions,
    )


@live_part("/dashboard/console/organizations/<organization_id>/figures", role="superadmin", seconds=LIVE_SECONDS)
async def console_organization_figures(organization_id: UUID, queries: ConsoleQueries) -> str:
    """Render an organization's balance, usage, and live calls."""
    organization = await queries.get(Organization, organization_id)
    return await render_part(
        "dashboard/console/organization_figures.html", **await _read_figures(queries, organization)
    )


@live_part("/dashboard/console/organizations/<organization_id>/providers", role="superadmin", seconds=LIVE_SECONDS)
async def console_organization_providers(organization_id: UUID, queries: ConsoleQueries) -> str:
    """Render an organization's providers, and those that failed in calls."""
    await queries.get(Organization, organization_id)
    return await render_part(
        "dashboard/console/organization_providers.html", **await _read_providers(queries, organization_id)
    )


@action(
    "/dashboard/console/organizations/<organization_id>/credit",
    role="superadmin",
    invalid=console_organization_page,
)
async def credit_organization(viewer: Viewer, organization_id: UUID, data: Credit, queries: ConsoleQueries) -> Next:
    """Top up an organization's balance, or charge it."""
    await queries.get(Organization, organization_id)
    async with queries.database.write(organization_id, actor=viewer.operator) as session:
        balance = await ledger.credit_account(session, data.amount, note=data.note)
        record_audit(session, AuditAction.BILLING_CREDITED, organization_id)
    return go_to(
        "console_organization_page",
        _("The balance is now %(balance)s.", balance=dollars(balance)),
        organization_id=organization_id,
    )


@action(
    "/dashboard/console/organizations/<organization_id>/suspend",
    role="superadmin",
    invalid=console_organization_page,
)
async def suspend_organization(viewer: Viewer, organization_id: UUID, data: ReasonForm, database: Database) -> Next:
    await support.suspend_organization(database, organization_id, reason=data.reason, actor=viewer.operator)
    return go_to(
        "console_organization_page", _("The organization is suspended."), "warning", organization_id=organization_id
    )


@action("/dashboard/console/organizations/<organization_id>/resume", role="superadmin")
async def resume_organization(viewer: Viewer, organization_id: UUID, database: Database) -> Next:
    await support.resume_organization(database, organization_id, actor=viewer.operator)
    return go_to("console_organization_page", _("The organization works again."), organization_id=organization_id)


@action(
    "/dashboard/console/organizations/<organization_id>/support",
    role="superadmin",
    invalid=console_organization_page,
)
async def start_support_session(viewer: Viewer, organization_id: UUID, data: ReasonForm, database: Database) -> Next:
    """Enter an organization for support."""
    await support.start_support_session(database, viewer.user, viewer.session.id, organization_id, data.reason)
    return go_to("overview", _("You are in the organization for an hour."))


# Users: search, end sessions, reset a second factor, and confirm an address.


class UserQuery(PageQuery):
    """A part of an e-mail address."""

    search: str = Field("", max_length=254)


@page("/dashboard/console/users", role="superadmin")
async def console_users_page(queries: ConsoleQueries, query: UserQuery) -> str:
    """List or search the users, with their organizations."""
    users = await queries.list_users(query.search, query)
    memberships = await queries.list_memberships([user.id for user in users.items])
    return await render("dashboard/console/users.html", users=users, memberships=memberships, query=query)


@action("/dashboard/console/users/<account_id>/sign-out", role="superadmin")
async def sign_out_user(viewer: Viewer, account_id: UUID, queries: ConsoleQueries, database: Database) -> Next:
    """End all sessions of a user."""
    user = await queries.get(User, account_id)
    await sign_in.sign_out(database, user.id)
    await queries.record_for_user(user.id, viewer.operator, AuditAction.USER_SESSIONS_ENDED)
    return go_to(
        "console_users_page", _("%(email)s was signed out everywhere.", email=user.email), "warning", search=user.email
    )


@action("/dashboard/console/users/<account_id>/reset-second-factor", role="superadmin")
async def reset_user_second_factor(
    viewer: Viewer, account_id: UUID, queries: ConsoleQueries, factors: SecondFactors
) -> Next:
    """Let a user who has lost the second factor sign in with the password alone."""
    user = await queries.get(User, account_id)
    await factors.reset(user.email)
    await queries.record_for_user(user.id, viewer.operator, AuditAction.USER_SECOND_FACTOR_REMOVED)
    notice = _("%(email)s signs in with the password alone.", email=user.email)
    return go_to("console_users_page", notice, "warning", search=user.email)


@action("/dashboard/console/users/<account_id>/confirm", role="superadmin")
async def confirm_user(viewer: Viewer, account_id: UUID, queries: ConsoleQueries, links: PasswordLinks) -> str:
    """Confirm the address of a user, and show the link for a new password once."""
    user = await queries.get(User, account_id)
    link = await links.confirm(user.email, actor=viewer.operator)
    return await render("dashboard/console/confirmed_user.html", email=user.email, link=link)
