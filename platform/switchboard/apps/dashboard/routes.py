"""The dashboard's blueprint with all pages; each imported module adds its own."""

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.pages import (  # noqa: F401
    account,
    answering,
    audit,
    authorize,
    automations,
    call_list,
    calls,
    campaign_editor,
    campaigns,
    connected_apps,
    contact_import,
    contacts,
    destinations,
    do_not_call,
    exports,
    integration,
    invitations,
    keys,
    knowledge,
    live_calls,
    live_parts,
    oauth_clients,
    organization,
    overview,
    password_links,
    phone_numbers,
    privacy,
    providers,
    search,
    second_factor,
    setup,
    sign_in,
    single_sign_on,
    support,
    team,
    texts,
    usage,
    webhooks,
)
from switchboard.apps.dashboard.pages.agents import (  # noqa: F401
    agents,
    client_sdks,
    simulations,
    talk,
    test_call,
    versions,
)
from switchboard.apps.dashboard.pages.console import installation, organizations, users  # noqa: F401

__all__ = ["dashboard"]
