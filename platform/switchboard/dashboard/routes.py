"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import (  # noqa: F401
    account,
    audit,
    authorize,
    automations,
    calls,
    campaign_forms,
    campaigns,
    connected_apps,
    contacts,
    do_not_call,
    integration,
    invitations,
    keys,
    knowledge,
    live_calls,
    oauth_clients,
    overview,
    phone_numbers,
    providers,
    sign_in,
    single_sign_on,
    team,
    texts,
    usage,
    webhooks,
)
from switchboard.dashboard.agents import client_sdks, simulations, talking, trying, versions  # noqa: F401
from switchboard.dashboard.agents import pages as agents  # noqa: F401
from switchboard.dashboard.blueprint import dashboard

__all__ = ["dashboard"]
