"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import calls, contacts, live_calls, overview, phone_numbers, sign_in, texts
from switchboard.dashboard.blueprint import dashboard

__all__ = ["calls", "contacts", "dashboard", "live_calls", "overview", "phone_numbers", "sign_in", "texts"]
