"""Who looks at a page: the browser's session, found by its cookie, and the token that its forms must bring back."""

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from quart import Response, g, request

from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.principal import SCOPES, Limit, Principal
from switchboard.foundation.web.rate_limits import Verdict
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.models import Organization, User, UserSession
from switchboard.resources.identity.system_queries import SESSION_LIFETIME
from switchboard.runtime import current_runtime

PAGES = Limit(per_second=20, burst=100)
ROLES = ("member", "owner", "superadmin")


class NotSignedIn(ApiError):
    """401: the page needs somebody who is signed in."""

    status, code, title = 401, "not_signed_in", "Not signed in"
    default_detail = "Sign in to see this page."


class Forbidden(ApiError):
    """403: a form that is not ours, or somebody who may not do this."""

    status, code, title = 403, "forbidden", "Not allowed"
    default_detail = "You may not do this. Ask an owner of the organization."


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who is signed in. `organization` and `role` are None for who belongs to none."""

    session: UserSession
    user: User
    organization: Organization | None
    role: str | None
    csrf: str

    @property
    def organization_id(self) -> UUID:
        """Where they work. Pages are shown only to who has an organization."""
        if self.organization is None:
            raise Forbidden("You belong to no organization yet. Ask an owner to invite you.")
        return self.organization.id

    def may(self, role: str) -> bool:
        """Whether they are at least a `member`, an `owner`, or a `superadmin`."""
        if role == "superadmin":
            return self.user.is_superadmin
        return self.role is not None and ROLES.index(self.role) >= ROLES.index(role)

    @property
    def principal(self) -> Principal:
        """As services and the audit log know them."""
        return Principal(self.organization_id, self.session.id, f"user:{self.user.id}", frozenset(SCOPES), PAGES, PAGES)


def cookie_name() -> str:
    """Over https the browser itself holds the cookie to this host, path and scheme."""
    return "__Host-switchboard" if is_https() else "switchboard"


def is_https() -> bool:
    """Whether browsers reach us by https, so that cookies may be kept to it."""
    return current_runtime().settings.base_url.startswith("https:")


def set_cookie(response: Response, token: str) -> None:
    """Have the browser keep a session's token, out of reach of scripts and of requests that other sites start."""
    age = int(SESSION_LIFETIME.total_seconds())
    response.set_cookie(cookie_name(), token, max_age=age, secure=is_https(), httponly=True, samesite="Lax", path="/")


def forget_cookie(response: Response) -> None:
    """Have the browser forget it, and whatever it has kept of our pages."""
    response.delete_cookie(cookie_name(), secure=is_https(), httponly=True, samesite="Lax", path="/")
    response.headers["Clear-Site-Data"] = '"cache", "storage"'


async def find_viewer() -> Viewer | None:
    """Who makes this request."""
    token = request.cookies.get(cookie_name(), "")
    signed_in = await sign_in.resume_session(current_runtime().database, token) if token and token.isascii() else None
    if signed_in is None:
        return None
    organization = signed_in.organization
    words = f"form {organization.id if organization else ''}"
    csrf = hmac.new(token.encode(), words.encode(), hashlib.sha256).hexdigest()
    g.viewer = Viewer(signed_in.session, signed_in.user, organization, signed_in.role, csrf)
    return g.viewer  # type: ignore[no-any-return]


async def current_viewer() -> Viewer:
    """Raises `NotSignedIn`."""
    viewer = await find_viewer()
    if viewer is None:
        raise NotSignedIn
    return viewer


def check_origin() -> None:
    """Refuse what another site's page sends. Raises `Forbidden`. Browsers name the origin of every form that is posted (Fetch, 3.2)."""
    origin = request.headers.get("Origin")
    if origin is None or origin == current_runtime().settings.base_url or urlsplit(origin).netloc == request.host:
        return
    raise Forbidden(
        f"This form was sent from another site. Open the dashboard at {current_runtime().settings.base_url}."
    )


def sending_page() -> str:
    """The address, on this host, of the page whose form was sent; empty where the browser does not say."""
    page = urlsplit(request.headers.get("Referer", ""))
    if page.netloc != request.host:
        return ""
    return page.path + (f"?{page.query}" if page.query else "")


async def check_form(viewer: Viewer) -> None:
    """Refuse a form that this session's pages for this organization did not carry. Raises `Forbidden`."""
    check_origin()
    given = (await request.form).get("csrf_token", "")
    if not hmac.compare_digest(given.encode(), viewer.csrf.encode()):
        raise Forbidden(
            "This page was opened in another session or for another organization. Load it again, then repeat what you did."
        )


async def slow_down(what: str, who: str, limit: Limit) -> Verdict:
    """Count an attempt of somebody who is not signed in."""
    return await current_runtime().limiter.check(what, who, limit)
