"""Browser calls: tokens, and the phone numbers that a browser or a phone app can call from."""
