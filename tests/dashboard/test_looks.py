"""The layout of pages with any content."""

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import Window

WORDS = "Zahnarztpraxis Dr. Müller-Lüdenscheidt, Terminvereinbarung und Notfallannahme, Außenstelle Süd, nachmittags"
ADDRESS = f"https://example.com/hooks/{'a-path-without-an-end/' * 5}?token={'x' * 60}"


async def test_long_words_widen_no_page(window: Window, live: LivePlatform) -> None:
    caller = live.caller
    agent = await caller.post("/v1/agents", {"name": WORDS})
    endpoint = await caller.post("/v1/webhook-endpoints", {"url": ADDRESS})
    contact = await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "x" * 200, "company": WORDS})
    assert agent.status == endpoint.status == contact.status == 201
    await window.page.set_viewport_size({"width": 390, "height": 844})
    pages = (f"/agents/{agent.json['id']}", f"/webhooks/{endpoint.json['id']}", f"/contacts/{contact.json['id']}")
    for path in (
        "/calls",
        "/calls/new",
        "/agents",
        "/contacts",
        "/webhooks",
        "/webhooks/deliveries",
        "/campaigns/new",
        "/usage",
        "/audit",
        *pages,
    ):
        await window.open(f"/dashboard{path}")
        wide = await window.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{path} is {wide} wide"
