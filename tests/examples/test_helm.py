"""The Helm chart, linted and rendered by Helm itself, and the plain manifests: ``make charts``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from adapter_environments import needs

from memgraph import __version__
from memgraph.config.loader import load_settings

needs("helm", "helm_python")
needs("helm", "kubernetes_validate")

import helm_python  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
import kubernetes_validate  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "examples/helm/memgraph"
MANIFESTS = ROOT / "examples/kubernetes/memgraph.yaml"
# The oldest and the newest version of Kubernetes to check.
VERSIONS = ("1.30.0", "1.37.0")
WARNING = 2
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "all": {
        "image": {"repository": "registry.example/memgraph", "tag": "edge"},
        "imagePullSecrets": [{"name": "pull"}],
        "allowedHosts": ["memory.internal"],
        "env": {
            "MEMGRAPH_MEMORY__LLM__PROVIDER": "litellm/openai/some-model",
            "MEMGRAPH_MEMORY__LLM__API_KEY_FILE": "/etc/memgraph/model/key",
            "MEMGRAPH_MEMORY__LLM__RETRIES": 3,
        },
        "secretFiles": [{"secretName": "model-key", "mountPath": "/etc/memgraph/model"}],
        "persistence": {"storageClass": "fast", "size": "50Gi"},
        "service": {"type": "NodePort", "port": 80},
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "tlsSecretName": "memory-tls",
            "annotations": {"a.example/b": "c"},
        },
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "only", "operator": "Exists"}],
        "affinity": {"podAffinity": {}},
    },
    "claim": {"persistence": {"existingClaim": "mine"}, "resources": {}},
}


def rendered(values: dict[str, Any]) -> dict[str, Any]:
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values, name="demo", namespace="prod")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return {each["kind"]: each for text in texts for each in yaml.safe_load_all(text) if each}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_chart_passes_the_linter(values: dict[str, Any]) -> None:
    report = helm_python.lint(CHART, values, strict=True)
    assert report["total_charts_linted"] == 1
    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] >= WARNING] == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_what_the_chart_renders_is_valid(values: dict[str, Any], version: str) -> None:
    objects = rendered(values)
    for each in objects.values():
        kubernetes_validate.validate(each, version, strict=True)
    assert ("Ingress" in objects) is ("ingress" in values)
    assert ("PersistentVolumeClaim" in objects) is (values != VALUES["claim"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plain_manifests_are_valid(version: str) -> None:
    objects = list(yaml.safe_load_all(MANIFESTS.read_text("utf-8")))
    assert len(objects) == 3
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


def test_the_chart_names_the_version_of_the_package() -> None:
    with helm_python.Chart.load(CHART) as chart:
        assert chart.metadata["appVersion"] == __version__


def test_by_default_the_chart_is_the_plain_manifests() -> None:
    """Names and labels excepted, so that checks of the manifests also cover the chart."""
    plain = {
        each["kind"]: each for each in yaml.safe_load_all(MANIFESTS.read_text("utf-8")) if each
    }
    chart = rendered({})
    assert chart.keys() == plain.keys()
    pods = [each["Deployment"]["spec"]["template"]["spec"] for each in (chart, plain)]
    for pod in pods:
        for container in (*pod["initContainers"], *pod["containers"]):
            container.pop("imagePullPolicy", None)
            container["env"] = sorted(each["name"] for each in container["env"])
        pod["volumes"][0]["persistentVolumeClaim"]["claimName"] = "memgraph"
    assert pods[0] == pods[1]
    labels = chart["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert chart["Service"]["spec"]["selector"].items() <= labels.items()


def test_what_the_chart_sets_is_a_setting(tmp_path: Path) -> None:
    pod = rendered(VALUES["all"])["Deployment"]["spec"]["template"]["spec"]
    environ = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    settings = load_settings(tmp_path, environ=environ).memory
    assert settings.server.allowed_hosts == (
        *("demo-memgraph", "demo-memgraph.prod", "demo-memgraph.prod.svc"),
        *("memory.example", "memory.internal"),
    )
    assert (settings.llm.api_key_file, settings.llm.retries) == ("/etc/memgraph/model/key", 3)


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 2},
        {"image": {"repository": ""}},
        {"allowedHosts": ["http://memory.example"]},
        {"terminationGracePeriodSeconds": 5},
        {"service": {"port": "http"}},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(helm_python.HelmError):
        rendered(values)
