"""Files of received text messages: fetching them from carriers, and serving them."""
