"""The dashboard's navigation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation: `icon` is a name in `static/icons.svg`, `role` is required to open it, and `beyond` is
    a second path prefix of its pages.
    """

    name: str
    path: str
    icon: str
    role: str = "viewer"
    beyond: str | None = None

    def leads_to(self, path: str) -> bool:
        """Return whether a path belongs to this entry."""
        below = path.startswith(f"{self.path}/") and self.path != "/dashboard"
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
            Entry("Overview", "/dashboard", "overview"),
            Entry("Live calls", "/dashboard/live", "live"),
            Entry("Agent desk", "/dashboard/desk", "headset", "agent"),
        ),
    ),
    Section(
        "Build",
        (
            Entry("Agents", "/dashboard/agents", "agent"),
            Entry("Knowledge", "/dashboard/knowledge", "book", beyond="/dashboard/documents/"),
            Entry("Automations", "/dashboard/automations", "bolt"),
        ),
    ),
    Section(
        "Talk",
        (
            Entry("Calls", "/dashboard/calls", "phone"),
            Entry("Text messages", "/dashboard/texts", "chat"),
            Entry("Contacts", "/dashboard/contacts", "people"),
            Entry("Campaigns", "/dashboard/campaigns", "campaign"),
            Entry("Phone numbers", "/dashboard/numbers", "hash"),
        ),
    ),
    Section(
        "Organization",
        (
            Entry("Webhooks", "/dashboard/webhooks", "webhook", "builder"),
            Entry("API keys", "/dashboard/keys", "key", "owner"),
            Entry("Providers", "/dashboard/providers", "plug", "owner"),
            Entry("Connected apps", "/dashboard/connected-apps", "link"),
            Entry("Team", "/dashboard/team", "team"),
            Entry("Usage and billing", "/dashboard/usage", "chart", "owner"),
            Entry("Destinations", "/dashboard/destinations", "phone", "owner"),
            Entry("Privacy requests", "/dashboard/privacy", "shield", "owner"),
            Entry("Audit log", "/dashboard/audit", "list", "owner"),
        ),
    ),
    Section(
        "Installation",
        (
            Entry("Organization settings", "/dashboard/organization", "list", "superadmin"),
            Entry("OAuth clients", "/dashboard/oauth-clients", "shield", "superadmin"),
        ),
    ),
)
