"""Commits say the reason in their body: CONTRIBUTING.md."""

import subprocess

import pytest

from tests.fixtures.servers import REPOSITORY

LAST_UNCHECKED = "258966f849755381d49cadd2fe5afabbba0dd95c"
"""Half of the commits up to this one have no body. Those after it are checked."""


def test_commits_have_a_reason_in_their_body() -> None:
    ancestor = ["git", "merge-base", "--is-ancestor", LAST_UNCHECKED, "HEAD"]
    if subprocess.run(ancestor, cwd=REPOSITORY, capture_output=True, check=False).returncode != 0:
        pytest.skip("this checkout has no history")
    log = ["git", "log", "--no-merges", "--format=%h %s%x00%b%x01", f"{LAST_UNCHECKED}..HEAD"]
    commits = subprocess.run(log, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    for commit in commits.split("\x01"):
        subject, _, body = commit.strip().partition("\0")
        assert not subject or body.strip(), f"{subject}: say in the body why"
