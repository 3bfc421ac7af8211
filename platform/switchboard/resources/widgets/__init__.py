"""Website widgets: a chat and a call with an agent on other people's pages."""
