"""Pages for the visitors of websites: the widget's script, its frame, its demo page, and the frame's requests."""

from switchboard.apps.visitor_pages.pages import blueprint as pages
from switchboard.apps.visitor_pages.visitor_requests import blueprint as visitor_requests

__all__ = ["pages", "visitor_requests"]
