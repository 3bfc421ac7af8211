"""Redis with deadlines: one server, a primary behind Sentinels, or a cluster. An unreachable server delays nothing for
long.

Redis holds only what may be lost (docs/decisions/0022-redis-is-optional.md), so its users go on without it.
"""

from switchboard.foundation.redis_client.clients import (
    HASH_TAG,
    LimitsRedis,
    RedisClients,
    open_redis_clients,
    receive_messages,
)
from switchboard.foundation.redis_client.urls import InvalidRedisUrl

__all__ = ["HASH_TAG", "InvalidRedisUrl", "LimitsRedis", "RedisClients", "open_redis_clients", "receive_messages"]
