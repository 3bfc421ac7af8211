"""Providers in processes of their own: the plugin's class runs in a child, and the host has a provider that asks it.

The two speak length-prefixed MessagePack over a socket pair. The host loads the plugin's module too, for its name and
its settings, and creates no instance of it.
"""
