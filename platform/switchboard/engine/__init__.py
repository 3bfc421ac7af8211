"""The live conversation engine and the provider instances that it calls."""
