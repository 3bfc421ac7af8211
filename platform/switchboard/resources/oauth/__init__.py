"""OAuth 2.0: applications that act for a user in one organization, with the scopes that the user granted
(docs/how-to/oauth.md).
"""
