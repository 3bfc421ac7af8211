"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import (
    account,
    audit,
    authorize,
    connected_apps,
    contacts,
    invitations,
    keys,
    oauth_clients,
    overview,
    sign_in,
    single_sign_on,
    team,
    usage,
)
from switchboard.dashboard.blueprint import dashboard

__all__ = [
    "account", "audit", "authorize", "connected_apps", "contacts", "dashboard", "invitations", "keys", "oauth_clients", "overview", "sign_in",
    "single_sign_on", "team", "usage",
]  # fmt: skip
