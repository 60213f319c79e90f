"""The files for Kubernetes and YARN, as far as they can be checked without either: options, settings, names that fit."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorspark.pipeline.spark_conf import is_encrypted, parse_conf, session_conf
from mirrorspark.pipeline.spark_master import check_master

OPS = Path(__file__).parents[2] / "ops" / "spark"


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    return {part["kind"]: part for part in yaml.safe_load_all((OPS / "kubernetes.yaml").read_text())}


def _settings(words: list[str]) -> tuple[str, dict[str, str]]:
    """The master, and all that Spark would be told, for four lanes."""
    options = [word for word in words if word.startswith("--")]
    (master,) = [word.removeprefix("--master=") for word in options if word.startswith("--master=")]
    given = parse_conf([word.removeprefix("--conf=") for word in options if word.startswith("--conf=")])
    check_master(master)
    conf = session_conf(master, lanes=4, folder=Path("/tmp/x"), ui=False, given=given, driver_flags="")
    return master, conf


def test_the_driver_and_its_service_fit_each_other(parts: dict[str, Any]) -> None:
    (container,) = parts["Deployment"]["spec"]["template"]["spec"]["containers"]
    master, conf = _settings(container["args"])
    service = parts["Service"]
    assert master.startswith("k8s://https://")
    assert conf["spark.driver.host"] == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    ports = {str(port["port"]) for port in service["spec"]["ports"]}
    assert ports == {conf["spark.driver.port"], conf["spark.driver.blockManager.port"]}
    assert service["spec"]["selector"] == parts["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert conf["spark.kubernetes.container.image"] == container["image"]
    assert conf["spark.kubernetes.driver.pod.name"] == f"$({container['env'][0]['name']})"
    assert is_encrypted(conf)


def test_executors_have_room_and_files_for_their_lanes(parts: dict[str, Any]) -> None:
    pod = parts["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    _, conf = _settings(container["args"])
    assert (conf["spark.executor.instances"], conf["spark.executor.cores"]) == ("2", "2")
    assert conf["spark.executor.memoryOverhead"] == "512m"
    template = Path(conf["spark.kubernetes.executor.podTemplateFile"])
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    config = parts["ConfigMap"]
    assert volumes[mounts[str(template.parent)]]["configMap"]["name"] == config["metadata"]["name"]
    executor = yaml.safe_load(config["data"][template.name])["spec"]
    certificates = {mount["mountPath"]: mount["name"] for mount in executor["containers"][0]["volumeMounts"]}
    for path, name in certificates.items():
        (of_executor,) = [volume for volume in executor["volumes"] if volume["name"] == name]
        assert of_executor == volumes[mounts[path]]


def test_the_driver_may_start_executors_and_is_the_only_one(parts: dict[str, Any]) -> None:
    spec = parts["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    account = parts["ServiceAccount"]["metadata"]["name"]
    assert spec["template"]["spec"]["serviceAccountName"] == account
    (subject,) = parts["RoleBinding"]["subjects"]
    assert subject["name"] == account
    assert parts["RoleBinding"]["roleRef"]["name"] == parts["Role"]["metadata"]["name"]
    (rule,) = parts["Role"]["rules"]
    assert {"pods", "configmaps"} <= set(rule["resources"])
    assert {"create", "delete", "get", "list", "watch"} <= set(rule["verbs"])
    assert {part["metadata"]["namespace"] for part in parts.values()} == {"mirrors"}


def test_the_line_for_yarn_is_accepted() -> None:
    text = (OPS / "yarn.sh").read_text()
    command = re.sub(r"\\\n", " ", text[text.index("exec mirrorspark") :])
    words = iter(shlex.split(command))
    joined = [f"{word}={next(words)}" if word in ("--master", "--conf") else word for word in words]
    master, conf = _settings(joined)
    assert master == "yarn"
    assert conf["spark.executorEnv.PYTHONPATH"] == "mirrorspark.zip:packages"
    assert conf["spark.executorEnv.PATH"].startswith("/usr/bin:")
    assert conf["spark.yarn.dist.archives"].endswith("#packages")
    assert is_encrypted(conf)
