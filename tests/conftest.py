pytest_plugins = ["tests.fixtures.servers", "tests.fixtures.app", "tests.fixtures.oauth", "tests.fixtures.receiver", "tests.fixtures.dashboard"]
