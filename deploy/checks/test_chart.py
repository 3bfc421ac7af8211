"""Helm renders the chart, with the autoscalers and without them. Skipped where `helm` is not installed."""

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


def test_without_autoscalers_the_chart_has_the_numbers_of_servers_and_workers() -> None:
    rendered = render()
    assert rendered.count("\n  replicas: 2\n") == 2
    assert "HorizontalPodAutoscaler" not in rendered
    assert rendered.count("kind: PodDisruptionBudget\n") == 2


def test_only_servers_have_a_media_address() -> None:
    rendered = render("--set", "serve.mediaUrl=ws://$(POD_IP):8080")
    assert rendered.count('value: "ws://$(POD_IP):8080"') == rendered.count("fieldPath: status.podIP") == 1
    assert "SWITCHBOARD_MEDIA_URL" not in render()


def test_the_autoscaler_decides_the_number_of_servers() -> None:
    rendered = render("--set", "serve.autoscaling.enabled=true")
    assert rendered.count("\n  replicas: ") == 1, "of the workers"
    assert rendered.count("kind: HorizontalPodAutoscaler\n") == 1
    assert "averageValue: 600m" in rendered


def test_the_autoscaler_decides_the_number_of_workers() -> None:
    rendered = render("--set", "worker.autoscaling.enabled=true", "--set", "serviceMonitor.enabled=true")
    assert rendered.count("\n  replicas: ") == 1, "of the servers"
    assert rendered.count("kind: HorizontalPodAutoscaler\n") == 1
    assert rendered.count("name: voice-worker-metrics\n") == 1
    assert rendered.count("job: voice-worker-metrics\n") == 1


def test_keda_decides_the_numbers_in_place_of_the_other_autoscalers() -> None:
    enabled = ("keda.enabled", "serve.autoscaling.enabled", "worker.autoscaling.enabled", "serviceMonitor.enabled")
    rendered = render(*(part for name in enabled for part in ("--set", f"{name}=true")))
    assert "\n  replicas: " not in rendered
    assert rendered.count("kind: ScaledObject\n") == 2
    assert "HorizontalPodAutoscaler" not in rendered
    assert 'threshold: "0.6"\n' in rendered
    assert 'max(switchboard_delivery_queue_age_seconds{namespace="default",job="voice-worker-metrics"})' in rendered
    assert "authenticationRef" not in rendered
    authenticated = render(
        "--set", "keda.enabled=true,keda.authenticationRef=prometheus,serve.autoscaling.enabled=true"
    )
    assert "      authenticationRef:\n        name: prometheus\n" in authenticated


def test_keda_changes_nothing_without_an_autoscaler() -> None:
    assert render("--set", "keda.enabled=true") == render()
