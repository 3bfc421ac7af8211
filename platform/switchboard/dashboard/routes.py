"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import automations, campaign_forms, campaigns, contacts, overview, providers, sign_in, webhooks
from switchboard.dashboard.blueprint import dashboard

__all__ = ["automations", "campaign_forms", "campaigns", "contacts", "dashboard", "overview", "providers", "sign_in", "webhooks"]
