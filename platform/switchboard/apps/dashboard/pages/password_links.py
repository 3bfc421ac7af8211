"""The pages with which users who forgot their password ask for a link by e-mail, and choose a new password."""

from dataclasses import dataclass

from quart import Response, request
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.sign_in_limits import PER_ADDRESS, digest_email
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.mail import Mailer
from switchboard.foundation.web.errors import RateLimited
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.password_links import LINK_PATH, PasswordLinks
from switchboard.resources.identity.service import IdentityError

PER_ACCOUNT = Limit(per_second=1 / 900, burst=3)
"""Three e-mails, then one every 15 minutes. Further requests get the same page, and no e-mail is sent."""


@dataclass(frozen=True, slots=True)
class PasswordLinkPages:
    """Shows the pages. Requests are rate-limited as on the sign-in page."""

    limiter: RateLimiter
    links: PasswordLinks

    async def count_attempt(self) -> None:
        """Count a request, before anything is done for it. Raises `RateLimited`."""
        if not (await self.limiter.check_address("password-link", request.remote_addr or "", PER_ADDRESS)).allowed:
            raise RateLimited(_("Too many attempts. Wait a moment, then try again."))

    async def may_send(self, email: str) -> bool:
        """Count an e-mail to an address, whether it has an account or not; return whether it may be sent."""
        return (await self.limiter.check("password-link", digest_email(email), PER_ACCOUNT)).allowed

    async def show_choice(self, token: str, form: Form) -> Response:
        """Show the form for a new password."""
        page = await render(
            "dashboard/sign_in/new_password.html", form=form, email=await self.links.find_email(token), is_changed=False
        )
        return Response(page, 422 if form.message else 200, content_type="text/html; charset=utf-8")


@dashboard.get("/dashboard/forgotten-password")
@inject
async def forgotten_password_page(mailer: Mailer) -> ResponseReturnValue:
    """Show the form that asks for a link, or where else to get one."""
    return await _show_request(mailer)


@dashboard.post("/dashboard/forgotten-password")
@inject
async def request_password_link(
    sessions: BrowserSessions, mailer: Mailer, links: PasswordLinks, pages: PasswordLinkPages
) -> ResponseReturnValue:
    """Send a link to a user. The page, and the time that it takes, are the same for an unknown address."""
    await pages.count_attempt()
    sessions.check_origin()
    email = (await request.form).get("email", "")
    if mailer.is_set_up and await pages.may_send(email):
        await links.request(email)
    return await _show_request(mailer, asked_for=email)


async def _show_request(mailer: Mailer, asked_for: str = "") -> str:
    return await render(
        "dashboard/sign_in/forgotten_password.html", form=Form(), sends_mail=mailer.is_set_up, asked_for=asked_for
    )


@dashboard.get(f"{LINK_PATH}<token>")
@inject
async def new_password_page(token: str, pages: PasswordLinkPages) -> ResponseReturnValue:
    """Show the form for a new password."""
    await pages.count_attempt()
    return await pages.show_choice(token, Form())


@dashboard.post(f"{LINK_PATH}<token>")
@inject
async def choose_password(token: str, sessions: BrowserSessions, pages: PasswordLinkPages) -> ResponseReturnValue:
    """Change the password, which proves the address. The user then signs in with the password, so that the link alone
    gives no session.
    """
    await pages.count_attempt()
    sessions.check_origin()
    try:
        await pages.links.change_password(token, (await request.form).get("password", ""))
    except IdentityError as refusal:
        return await pages.show_choice(token, Form(message=str(refusal)))
    return await render("dashboard/sign_in/new_password.html", form=Form(), email="", is_changed=True)
