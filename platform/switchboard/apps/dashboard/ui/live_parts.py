"""Live parts of pages: HTML that the server keeps current while somebody looks at it.

A template contains `<div data-live="{{ url }}">{% include part %}</div>`, and the page at that address renders the part
alone (`decorators.live_part`). `static/js/live.js` follows the parts of all tabs by one stream (`pages/live_parts.py`),
or asks for each part again where the browser has no shared workers.
"""

FINAL_HEADER = "Live-Part-Final"


class FinalPart(str):
    """The last content of a part: it does not change any more."""

    __slots__ = ()
