"""Generator of the typed clients from the OpenAPI document."""
