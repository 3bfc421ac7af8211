"""The attacks by name, in the order in which they run."""

from tests.attack import (
    actions,
    anonymous,
    carrier_callbacks,
    dashboard_pages,
    foreign_ids,
    form_ids,
    neighbors,
    oauth_flow,
    outbound_urls,
    passing_time,
    planted_accounts,
    role_table,
    sockets,
    visitors,
    wrong_scopes,
)
from tests.attack.scene import Attack

# Guesses at passwords come last: they lock this address out.
ATTACKS: dict[str, Attack] = {
    "wrong-scopes": wrong_scopes.attack_scopes,
    "wrong-credentials": wrong_scopes.attack_credentials,
    "foreign-ids": foreign_ids.attack_foreign_ids,
    "sockets-and-links": sockets.attack_sockets,
    "oauth": oauth_flow.attack_oauth,
    "dashboard-foreign-pages": dashboard_pages.attack_pages,
    "dashboard-foreign-fields": form_ids.attack_form_ids,
    "dashboard-forged-forms": dashboard_pages.attack_forms,
    "dashboard-roles": dashboard_pages.attack_roles,
    "role-table": role_table.attack_role_table,
    "support-sessions": role_table.attack_support,
    "dashboard-sessions": dashboard_pages.attack_sessions,
    "planted-accounts": planted_accounts.attack_accounts,
    "outbound-urls": outbound_urls.attack_urls,
    "carrier-callbacks": carrier_callbacks.attack_callbacks,
    "actions-beyond-scopes": actions.attack_actions,
    "toll-fraud": actions.attack_destinations,
    "public-pages": anonymous.attack_public_pages,
    "hostile-requests": anonymous.attack_requests,
    "passing-time": passing_time.attack_time,
    "neighbors": neighbors.attack_neighbor,
    "website-widgets": visitors.attack_widgets,
    "slow-documents": anonymous.attack_documents,
    "sign-in": anonymous.attack_sign_in,
}
