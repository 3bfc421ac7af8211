"""Helm renders the chart, with the autoscaler and without it. Skipped where `helm` is not installed."""

import shutil
import subprocess

import pytest

from tests.fixtures.servers import REPOSITORY


def render(*options: str) -> str:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed")
    chart = str(REPOSITORY / "deploy" / "helm" / "switchboard")
    command = [helm, "template", "voice", chart, "--kube-version", "1.30.0", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_number_of_servers_is_the_chart_s_without_an_autoscaler() -> None:
    assert render().count("\n  replicas: 2\n") == 2
    assert "HorizontalPodAutoscaler" not in render()


def test_the_autoscaler_decides_the_number_of_servers() -> None:
    rendered = render("--set", "autoscaling.enabled=true")
    assert rendered.count("\n  replicas: ") == 1, "of the workers"
    assert "kind: HorizontalPodAutoscaler" in rendered
    assert "averageValue: 600m" in rendered
