"""The dashboard's navigation."""

from dataclasses import dataclass

from switchboard.foundation.languages import LazyText


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
    name: str
    entries: tuple[Entry, ...]


SECTIONS = (
    Section(
        "",
        (
            Entry(LazyText("Overview"), "/dashboard", "overview", key="o"),
            Entry(LazyText("Live calls"), "/dashboard/live", "live", key="l"),
            Entry(LazyText("Call queue"), "/dashboard/call-queue", "headset", "agent", key="q"),
        ),
    ),
    Section(
        LazyText("Build"),
        (
            Entry(LazyText("Agents"), "/dashboard/agents", "agent", key="a"),
            Entry(LazyText("Knowledge"), "/dashboard/knowledge", "book", beyond="/dashboard/documents/", key="k"),
            Entry(LazyText("Automations"), "/dashboard/automations", "bolt", key="u"),
            Entry(LazyText("Calendars"), "/dashboard/calendars", "clock"),
            Entry(LazyText("Appointment types"), "/dashboard/appointment-types", "list"),
        ),
    ),
    Section(
        LazyText("Talk"),
        (
            Entry(LazyText("Calls"), "/dashboard/calls", "phone", key="c"),
            Entry(LazyText("Text messages"), "/dashboard/texts", "chat", key="t"),
            Entry(LazyText("Contacts"), "/dashboard/contacts", "people", key="p"),
            Entry(LazyText("Appointments"), "/dashboard/appointments", "calendar"),
            Entry(LazyText("Campaigns"), "/dashboard/campaigns", "campaign", key="m"),
            Entry(LazyText("Phone numbers"), "/dashboard/numbers", "hash", key="n"),
        ),
    ),
    Section(
        LazyText("Organization"),
        (
            Entry(LazyText("General"), "/dashboard/general", "list", "owner"),
            Entry(LazyText("Webhooks"), "/dashboard/webhooks", "webhook", "builder", key="w"),
            Entry(LazyText("API keys"), "/dashboard/keys", "key", "owner"),
            Entry(LazyText("Providers"), "/dashboard/providers", "plug", "owner"),
            Entry(LazyText("Connected apps"), "/dashboard/connected-apps", "link"),
            Entry(LazyText("Team"), "/dashboard/team", "team"),
            Entry(LazyText("Usage and billing"), "/dashboard/usage", "chart", "owner"),
            Entry(LazyText("Destinations"), "/dashboard/destinations", "phone", "owner"),
            Entry(LazyText("Privacy requests"), "/dashboard/privacy", "shield", "owner"),
            Entry(LazyText("Audit log"), "/dashboard/audit", "list", "owner"),
            Entry(LazyText("Documentation"), "/docs", "book"),
        ),
    ),
    Section(
        LazyText("Installation"),
        (
            Entry(LazyText("Console"), "/dashboard/console", "overview", "superadmin", exact=True),
            Entry(LazyText("All organizations"), "/dashboard/console/organizations", "list", "superadmin"),
            Entry(LazyText("All users"), "/dashboard/console/users", "team", "superadmin"),
            Entry(LazyText("Plugins"), "/dashboard/console/plugins", "plug", "superadmin"),
            Entry(LazyText("OAuth clients"), "/dashboard/oauth-clients", "shield", "superadmin"),
        ),
    ),
)

COMMANDS = (
    Entry(LazyText("Place a call"), "/dashboard/calls/new", "phone", "agent"),
    Entry(LazyText("Write a text message"), "/dashboard/texts/new", "chat", "agent"),
    Entry(LazyText("Book an appointment"), "/dashboard/appointments/new", "calendar", "agent"),
    Entry(LazyText("Add a contact"), "/dashboard/contacts/new", "person", "agent"),
    Entry(LazyText("Import contacts"), "/dashboard/contacts/import", "upload", "builder"),
    Entry(LazyText("Create an agent"), "/dashboard/agents/templates", "agent", "builder"),
    Entry(LazyText("Create a campaign"), "/dashboard/campaigns/new", "campaign", "builder"),
    Entry(LazyText("Create an automation"), "/dashboard/automations/new", "bolt", "builder"),
    Entry(LazyText("Create a knowledge base"), "/dashboard/knowledge/new", "book", "builder"),
    Entry(LazyText("Create an appointment type"), "/dashboard/appointment-types/new", "list", "owner"),
    Entry(LazyText("Get a phone number"), "/dashboard/numbers/buy", "hash", "owner"),
    Entry(LazyText("Add a webhook endpoint"), "/dashboard/webhooks/new", "webhook", "owner"),
    Entry(LazyText("Create an API key"), "/dashboard/keys/new", "key", "owner"),
)
"""Pages that begin something, which the search offers."""
