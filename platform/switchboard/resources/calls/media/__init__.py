"""The media side of a call: WebSockets, the call runner, and what it needs while a call is in progress."""
