"""Generated from the OpenAPI document: run `make clients` instead of editing."""
