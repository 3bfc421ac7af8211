"""Loaded by pytest wherever Switchboard is installed (entry point `pytest11`): the contracts' assertions show their values."""

import pytest

pytest.register_assert_rewrite("switchboard.plugins.testing")
