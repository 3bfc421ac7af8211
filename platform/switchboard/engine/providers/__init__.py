"""An organization's providers: configuration, instances, and failover."""
