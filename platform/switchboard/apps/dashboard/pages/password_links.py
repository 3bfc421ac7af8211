"""The pages with which users who forgot their password ask for a link by e-mail, and choose a new password."""

from quart import Response, request
from quart.typing import ResponseReturnValue

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.sign_in_limits import count_address, digest_email
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import BrowserSessions
from switchboard.foundation.mail import Mailer
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.password_links import LINK_PATH, PasswordLinks
from switchboard.resources.identity.service import IdentityError

PURPOSE = "password-link"
"""Name of the limits: requests are rate-limited as on the sign-in page."""
PER_ACCOUNT = Limit(per_second=1 / 900, burst=3)
"""Three e-mails, then one every 15 minutes. Further requests get the same page, and no e-mail is sent."""


@dashboard.get("/dashboard/forgotten-password")
@inject
async def forgotten_password_page(mailer: Mailer) -> ResponseReturnValue:
    """Show the form that asks for a link, or where else to get one."""
    return await _show_request(mailer)


@dashboard.post("/dashboard/forgotten-password")
@inject
async def request_password_link(
    sessions: BrowserSessions, mailer: Mailer, links: PasswordLinks, limiter: RateLimiter
) -> ResponseReturnValue:
    """Send a link to a user. The page, and the time that it takes, are the same for an unknown address, and e-mails to
    it are counted, too.
    """
    await count_address(limiter, PURPOSE)
    sessions.check_origin()
    email = (await request.form).get("email", "")
    if mailer.is_set_up and (await limiter.check(PURPOSE, digest_email(email), PER_ACCOUNT)).allowed:
        await links.request(email)
    return await _show_request(mailer, asked_for=email)


async def _show_request(mailer: Mailer, asked_for: str = "") -> str:
    return await render(
        "dashboard/sign_in/forgotten_password.html", form=Form(), sends_mail=mailer.is_set_up, asked_for=asked_for
    )


async def _show_choice(links: PasswordLinks, token: str, form: Form) -> Response:
    email = await links.find_email(token)
    page = await render("dashboard/sign_in/new_password.html", form=form, email=email, is_changed=False)
    return Response(page, 422 if form.message else 200)


@dashboard.get(f"{LINK_PATH}<token>")
@inject
async def new_password_page(token: str, links: PasswordLinks, limiter: RateLimiter) -> ResponseReturnValue:
    """Show the form for a new password."""
    await count_address(limiter, PURPOSE)
    return await _show_choice(links, token, Form())


@dashboard.post(f"{LINK_PATH}<token>")
@inject
async def choose_password(
    token: str, sessions: BrowserSessions, links: PasswordLinks, limiter: RateLimiter
) -> ResponseReturnValue:
    """Change the password, which proves the address. The user then signs in with the password, so that the link alone
    gives no session.
    """
    await count_address(limiter, PURPOSE)
    sessions.check_origin()
    try:
        await links.change_password(token, (await request.form).get("password", ""))
    except IdentityError as refusal:
        return await _show_choice(links, token, Form(message=str(refusal)))
    return await render("dashboard/sign_in/new_password.html", form=Form(), email="", is_changed=True)
