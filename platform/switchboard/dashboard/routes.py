"""The dashboard with all its pages: each module adds its own to the blueprint."""

from switchboard.dashboard import contacts, knowledge, overview, sign_in
from switchboard.dashboard.agents import pages as agents
from switchboard.dashboard.agents import simulations, talking, trying, versions
from switchboard.dashboard.blueprint import dashboard

__all__ = ["agents", "contacts", "dashboard", "knowledge", "overview", "sign_in", "simulations", "talking", "trying", "versions"]
