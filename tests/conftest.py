pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.app", "tests.fixtures.receiver", "tests.fixtures.dashboard"]
