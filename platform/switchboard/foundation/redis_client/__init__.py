"""Redis with deadlines: one server, a primary behind Sentinels, or a cluster. An unreachable server delays nothing for
long.

Redis holds only what may be lost (docs/decisions/0022-redis-is-optional.md), so its users go on without it.
"""
