"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import account, audit, contacts, invitations, keys, overview, sign_in, team, usage
from switchboard.dashboard.blueprint import dashboard

__all__ = ["account", "audit", "contacts", "dashboard", "invitations", "keys", "overview", "sign_in", "team", "usage"]
