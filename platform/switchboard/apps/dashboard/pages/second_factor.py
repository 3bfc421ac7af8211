"""The pages on which users set up, and remove, the second factor of their sign-in."""

import segno
from pydantic import BaseModel

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.account import require_password
from switchboard.apps.dashboard.sign_in_limits import SignInLimits
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer, record_in_current_organization
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.database import Database
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.identity.service import IdentityError


class NewApp(BaseModel):
    """The secret that the page has shown, a code with which the app proves that it keeps it, and the password that
    allows it.
    """

    secret: str
    code: str
    password: str


class FactorRemoval(BaseModel):
    """A code of the app, or a recovery code."""

    code: str


@page("/dashboard/account/second-factor", role="user")
async def second_factor_page(viewer: Viewer, form: Form, factors: SecondFactors) -> str:
    """Show the second factor, or a new secret for an app."""
    if (factor := await factors.find(viewer.user.id)) is not None:
        return await render("dashboard/account/second_factor.html", form=form, factor=factor)
    secret, url = factors.begin(viewer.user, str(form.value("secret", "")))
    return await render(
        "dashboard/account/new_second_factor.html",
        form=form,
        secret=secret,
        qr_code=segno.make(url).svg_data_uri(scale=5, border=2, light="#fff"),
    )


@action("/dashboard/account/second-factor", role="user", form=NewApp, invalid=second_factor_page)
async def add_second_factor(
    viewer: Viewer, database: Database, data: NewApp, factors: SecondFactors, limiter: RateLimiter
) -> str:
    """Store the app, and show the recovery codes once. The password is asked for, as for a passkey."""
    if not viewer.user.password_hash:
        raise IdentityError(_("You sign in through your identity provider, which has second factors of its own."))
    await require_password(limiter, viewer.user, data.password)
    codes = await factors.add(viewer.user, data.secret, data.code)
    await record_in_current_organization(database, viewer, AuditAction.USER_SECOND_FACTOR_ADDED, viewer.user.id)
    return await render("dashboard/account/recovery_codes.html", codes=codes)


@action("/dashboard/account/second-factor/remove", role="user", form=FactorRemoval, invalid=second_factor_page)
async def remove_second_factor(
    viewer: Viewer, database: Database, data: FactorRemoval, factors: SecondFactors, limits: SignInLimits
) -> Next:
    """Remove the app. Codes are counted as on the sign-in page."""
    await limits.count_code(viewer.user.id)
    await factors.remove(viewer.user.id, data.code)
    await limits.uncount_code(viewer.user.id)
    await record_in_current_organization(database, viewer, AuditAction.USER_SECOND_FACTOR_REMOVED, viewer.user.id)
    return go_to("account_page", _("The second factor was removed."), "warning")
