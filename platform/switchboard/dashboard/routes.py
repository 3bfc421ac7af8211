"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import contacts, knowledge, overview, sign_in
from switchboard.dashboard.blueprint import dashboard

__all__ = ["contacts", "dashboard", "knowledge", "overview", "sign_in"]
