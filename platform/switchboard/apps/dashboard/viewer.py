"""The viewer of a page: the user of the browser's session cookie, and the CSRF token of the session's forms."""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit
from uuid import UUID

from quart import g, request
from werkzeug.sansio.response import Response as AnyResponse

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database
from switchboard.foundation.languages import DEFAULT_LANGUAGE, LANGUAGES, set_language
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ApiError, OrganizationMoving, OrganizationSuspended
from switchboard.foundation.web.principal import Limit, Principal, get_role_scopes, includes_role
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.queries import SESSION_LIFETIME
from switchboard.resources.identity.support import SEEING_ROLE, build_support_actor

PAGES = Limit(per_second=20, burst=100)


class NotSignedIn(ApiError):
    """401: the page requires a signed-in user."""

    status, code, title = 401, "not_signed_in", "Not signed in"
    default_detail = "Sign in to see this page."


class PageForbidden(ApiError):
    """403: a forged form, or a user without permission."""

    status, code, title = 403, "forbidden", "Not allowed"
    default_detail = "You do not have permission to do this. Ask an owner of the organization."


class SupportForbidden(PageForbidden):
    """403: a support session changes nothing that is secret or outlasts it."""

    default_detail = (
        "A support session changes nothing that is secret or outlasts it. Ask an owner of the organization to do this."
    )


class NoOrganization(PageForbidden):
    """403: the page belongs to an organization, and the user has entered none."""

    default_detail = "You do not belong to an organization yet. Ask an owner to invite you."


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer(sign_in.AuthenticatedSession):
    """An authenticated session with the CSRF token of its forms."""

    csrf: str

    @property
    def organization_id(self) -> UUID:
        """The organization's id. Raises `NoOrganization` for a user without an organization."""
        if self.organization is None:
            raise NoOrganization
        return self.organization.id

    def is_in(self, organization: Organization | None) -> bool:
        """Return whether the viewer is in this organization; for None, whether the viewer is in no organization."""
        return (self.organization and self.organization.id) == (organization and organization.id)

    @property
    def timezone(self) -> str:
        """The organization's IANA time zone; UTC for a user without an organization."""
        return self.organization.timezone if self.organization else "UTC"

    def has_role(self, role: str) -> bool:
        """Return whether the user is a `superadmin`, or has at least this role in the organization; each viewer is a
        `user`.
        """
        if role == "user":
            return True
        if role == "superadmin":
            return self.user.is_superadmin
        return self.role is not None and includes_role(self.role, role)

    def may_see(self, role: str) -> bool:
        """Return whether the user sees the pages of this role. A support session sees more than it may do."""
        return self.has_role(role) or (self.support is not None and role == SEEING_ROLE)

    @property
    def principal(self) -> Principal:
        """The principal for services and the audit log, with the scopes of the user's role."""
        scopes = get_role_scopes(self.role) if self.role is not None else frozenset[str]()
        actor = build_support_actor(self.user.id) if self.support else f"user:{self.user.id}"
        return Principal(self.organization_id, self.session.id, actor, scopes, PAGES, PAGES)

    @property
    def operator(self) -> str:
        """The audit log's actor for what a superadmin does in the operator console."""
        return f"user:{self.user.id} (operator)"

    def require_running_organization(self) -> None:
        """Raise `OrganizationSuspended` for a member of a suspended organization; a support session may look at it."""
        if self.support is None and self.organization is not None and self.organization.suspended_at is not None:
            reason = self.organization.suspension_reason
            raise OrganizationSuspended(f"{OrganizationSuspended.default_detail} Reason: {reason}")

    def require_resting_organization(self) -> None:
        """Raise `OrganizationMoving` while the organization is being moved to another installation."""
        if self.organization is not None and self.organization.moving_since is not None:
            raise OrganizationMoving


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie of one path, out of reach of scripts, and over HTTPS only if browsers use it."""

    name: str
    seconds: int
    path: str
    same_site: Literal["Lax", "Strict"] = "Lax"

    def read(self) -> str:
        """Return the value that this request has; empty without one."""
        return request.cookies.get(self.name, "")

    def set(self, response: AnyResponse, value: str, settings: Settings) -> None:
        """Let a response set the cookie."""
        response.set_cookie(
            self.name,
            value,
            max_age=self.seconds,
            secure=is_https(settings),
            httponly=True,
            samesite=self.same_site,
            path=self.path,
        )

    def delete(self, response: AnyResponse, settings: Settings) -> None:
        """Let a response delete the cookie."""
        secure = is_https(settings)
        response.delete_cookie(self.name, path=self.path, secure=secure, httponly=True, samesite=self.same_site)


@dataclass(frozen=True, slots=True)
class BrowserSessions:
    """Sessions of browsers: their cookies, and the forms that they send."""

    settings: Settings
    database: Database

    @property
    def cookie(self) -> Cookie:
        """The session cookie. Over HTTPS, the prefix `__Host-` of its name binds it to this host, path, and scheme."""
        name = "__Host-switchboard" if is_https(self.settings) else "switchboard"
        return Cookie(name, int(SESSION_LIFETIME.total_seconds()), "/")

    async def find_viewer(self) -> Viewer | None:
        """Return the viewer of this request; None if the browser is not signed in."""
        token = self.cookie.read()
        signed_in = await sign_in.resume_session(self.database, token) if token and token.isascii() else None
        if signed_in is None:
            return None
        organization = signed_in.organization
        words = f"form {organization.id if organization else ''}"
        csrf = hmac.new(token.encode(), words.encode(), hashlib.sha256).hexdigest()
        g.viewer = Viewer(signed_in.session, signed_in.user, organization, signed_in.role, signed_in.support, csrf=csrf)
        set_language(choose_page_language(g.viewer))
        return g.viewer  # type: ignore[no-any-return]

    async def require_viewer(self) -> Viewer:
        """Return the viewer of this request. Raises `NotSignedIn`."""
        viewer = await self.find_viewer()
        if viewer is None:
            raise NotSignedIn
        return viewer

    def check_origin(self) -> None:
        """Raise `Forbidden` for a form of another site. Browsers send the origin of every posted form (Fetch, 3.2)."""
        origin, base_url = request.headers.get("Origin"), self.settings.base_url
        if origin is None or origin == base_url or urlsplit(origin).netloc == request.host:
            return
        raise PageForbidden(
            _("This form was sent from another site. Open the dashboard at %(base_url)s.", base_url=base_url)
        )

    async def check_form(self, viewer: Viewer) -> None:
        """Check the CSRF token of a form, which is bound to session and organization. Raises `Forbidden`."""
        self.check_origin()
        given = (await request.form).get("csrf_token", "")
        if not hmac.compare_digest(given.encode(), viewer.csrf.encode()):
            raise PageForbidden(
                _("This page was opened in another session or for another organization. Reload it and try again.")
            )


def choose_page_language(viewer: Viewer | None) -> str:
    """Return the language of a page: that of the user, else of the organization, else the first of the browser's that
    the dashboard has, else English.
    """
    own = (viewer and viewer.user.language) or ""
    shared = (viewer and viewer.organization and viewer.organization.language) or ""
    # Those that the browser asks for, best first, without their regions.
    asked = [tag.partition("-")[0].lower() for tag, quality in request.accept_languages if quality > 0]
    return next((language for language in (own, shared, *asked) if language in LANGUAGES), DEFAULT_LANGUAGE)


def is_https(settings: Settings) -> bool:
    """Return whether browsers reach the dashboard over HTTPS."""
    return settings.base_url.startswith("https:")


def get_sending_page() -> str:
    """Return the address, on this host, of the page that sent the form; empty if the browser does not send it."""
    page = urlsplit(request.headers.get("Referer", ""))
    if page.netloc != request.host:
        return ""
    return page.path + (f"?{page.query}" if page.query else "")


async def record_in_current_organization(
    database: Database, viewer: Viewer, action: AuditAction, subject: object, fields: Iterable[str] = ()
) -> None:
    """Record a change that belongs to no organization, of an account or an application, in the audit log of the
    viewer's current one, if there is one.
    """
    if viewer.organization is None:
        return
    async with database.write(viewer.organization_id, actor=viewer.principal.actor) as session:
        record_audit(session, action, subject, fields=fields)
