"""The dashboard's navigation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation: `icon` is a name in `static/icons.svg`, `role` is required to open it, `beyond` is a
    second path prefix of its pages, `key` opens it after the key G, and `exact`
    leaves the paths below it to other entries.
    """

    name: str
    path: str
    icon: str
    role: str = "viewer"
    beyond: str | None = None
    key: str = ""
    exact: bool = False

    def leads_to(self, path: str) -> bool:
        """Return whether a path belongs to this entry."""
        below = path.startswith(f"{self.path}/") and self.path != "/dashboard" and not self.exact
        return path == self.path or below or (self.beyond is not None and path.startswith(self.beyond))


@dataclass(frozen=True, slots=True)
class Section:
    """A group of entries."""

    name: str
    entries: tuple[Entry, ...]


SECTIONS = (
    Section(
        "",
        (
            Entry("Overview", "/dashboard", "overview", key="o"),
            Entry("Live calls", "/dashboard/live", "live", key="l"),
            Entry("Agent desk", "/dashboard/desk", "headset", "agent", key="d"),
        ),
    ),
    Section(
        "Build",
        (
            Entry("Agents", "/dashboard/agents", "agent", key="a"),
            Entry("Knowledge", "/dashboard/knowledge", "book", beyond="/dashboard/documents/", key="k"),
            Entry("Automations", "/dashboard/automations", "bolt", key="u"),
        ),
    ),
    Section(
        "Talk",
        (
            Entry("Calls", "/dashboard/calls", "phone", key="c"),
            Entry("Text messages", "/dashboard/texts", "chat", key="t"),
            Entry("Contacts", "/dashboard/contacts", "people", key="p"),
            Entry("Campaigns", "/dashboard/campaigns", "campaign", key="m"),
            Entry("Phone numbers", "/dashboard/numbers", "hash", key="n"),
        ),
    ),
    Section(
        "Organization",
        (
            Entry("General", "/dashboard/general", "list", "owner"),
            Entry("Webhooks", "/dashboard/webhooks", "webhook", "builder", key="w"),
            Entry("API keys", "/dashboard/keys", "key", "owner"),
            Entry("Providers", "/dashboard/providers", "plug", "owner"),
            Entry("Connected apps", "/dashboard/connected-apps", "link"),
            Entry("Team", "/dashboard/team", "team"),
            Entry("Usage and billing", "/dashboard/usage", "chart", "owner"),
            Entry("Destinations", "/dashboard/destinations", "phone", "owner"),
            Entry("Privacy requests", "/dashboard/privacy", "shield", "owner"),
            Entry("Audit log", "/dashboard/audit", "list", "owner"),
            Entry("Documentation", "/docs", "book"),
        ),
    ),
    Section(
        "Installation",
        (
            Entry("Console", "/dashboard/console", "overview", "superadmin", exact=True),
            Entry("All organizations", "/dashboard/console/organizations", "list", "superadmin"),
            Entry("All users", "/dashboard/console/users", "team", "superadmin"),
            Entry("Plugins", "/dashboard/console/plugins", "plug", "superadmin"),
            Entry("OAuth clients", "/dashboard/oauth-clients", "shield", "superadmin"),
        ),
    ),
)

COMMANDS = (
    Entry("Place a call", "/dashboard/calls/new", "phone", "agent"),
    Entry("Write a text message", "/dashboard/texts/new", "chat", "agent"),
    Entry("Add a contact", "/dashboard/contacts/new", "person", "agent"),
    Entry("Import contacts", "/dashboard/contacts/import", "upload", "builder"),
    Entry("Create an agent", "/dashboard/agents/templates", "agent", "builder"),
    Entry("Create a campaign", "/dashboard/campaigns/new", "campaign", "builder"),
    Entry("Create an automation", "/dashboard/automations/new", "bolt", "builder"),
    Entry("Create a knowledge base", "/dashboard/knowledge/new", "book", "builder"),
    Entry("Get a phone number", "/dashboard/numbers/buy", "hash", "owner"),
    Entry("Add a webhook endpoint", "/dashboard/webhooks/new", "webhook", "owner"),
    Entry("Create an API key", "/dashboard/keys/new", "key", "owner"),
)
"""Pages that begin something, which the search offers."""
