"""What Spark is told: a person's settings win where they may, executors elsewhere get our code and their own Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.errors import SettingsError
from mirrorspark.pipeline.spark_conf import SETTLED, is_encrypted, parse_conf, python_name, session_conf

FOLDER = Path("/tmp/of-the-driver")


def _conf(master: str | None, given: dict[str, str] | None = None, lanes: int = 3) -> dict[str, str]:
    return session_conf(master, lanes=lanes, folder=FOLDER, ui=False, given=given or {}, driver_flags="-Xss512k")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("spark.cores.max", "not spark.key=value"),
        ("cores=2", "not spark.key=value"),
        ("spark.authenticate.secret=hunter2", "everybody's to read"),
        ("spark.hadoop.fs.s3a.access.key=hunter2", "everybody's to read"),
        ("spark.ssl.keyPassword=hunter2", "everybody's to read"),
        ("spark.kubernetes.authenticate.oauthToken=hunter2", "everybody's to read"),
        *((f"{key}=true", "cannot be set") for key in SETTLED),
    ],
)
def test_settings_that_are_refused(given: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        parse_conf([given])
    assert "hunter2" not in str(refused.value)
    assert given.partition("=")[0] in str(refused.value)


def test_settings_that_are_taken() -> None:
    given = ["spark.cores.max = 4", "spark.executorEnv.A=b=c", "spark.authenticate.secret.file=/run/secret"]
    given += ["spark.kubernetes.authenticate.oauthTokenFile=/token", "spark.cores.max=5"]
    assert parse_conf(given) == {
        "spark.cores.max": "5",
        "spark.executorEnv.A": "b=c",
        "spark.authenticate.secret.file": "/run/secret",
        "spark.kubernetes.authenticate.oauthTokenFile": "/token",
    }


@pytest.mark.parametrize("master", [None, "local[2]", "spark://a:7077", "yarn", "k8s://https://a:6443"])
def test_lanes_are_never_doubled_and_a_person_may_change_the_rest(master: str | None) -> None:
    assert _conf(master)["spark.speculation"] == "false"
    assert _conf(master)["spark.python.daemon.module"] == "mirrorspark.pipeline.worker_daemon"
    assert _conf(master, {"spark.driver.memory": "1g"})["spark.driver.memory"] == "1g"


def test_the_embedded_spark_stays_on_this_machine() -> None:
    conf = _conf(None)
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.local.dir"].startswith(str(FOLDER))
    assert not [key for key in conf if key.startswith(("spark.executorEnv", "spark.executor."))]


@pytest.mark.parametrize("master", ["spark://a:7077", "yarn", "k8s://https://a:6443", "local-cluster[2,1,512]"])
def test_executors_elsewhere_get_our_code_and_nothing_of_this_disk(master: str) -> None:
    conf = _conf(master, {"spark.executorEnv.PYTHONPATH": "packages"})
    assert conf["spark.executorEnv.PYTHONPATH"] == "mirrorspark.zip:packages"
    assert "spark.local.dir" not in conf
    assert "spark.driver.host" not in conf
    of_executors = {key: value for key, value in conf.items() if key.startswith("spark.executor")}
    assert not [key for key, value in of_executors.items() if str(FOLDER) in value]


def test_slots_for_the_lanes_and_no_more() -> None:
    assert _conf("spark://a:7077")["spark.cores.max"] == "3"
    assert _conf("spark://a:7077", {"spark.cores.max": "9"})["spark.cores.max"] == "9"
    for master in ("yarn", "k8s://https://a:6443"):
        conf = _conf(master)
        assert (conf["spark.executor.instances"], conf["spark.executor.cores"]) == ("2", "2")
        assert conf["spark.executor.memoryOverhead"] == "512m"
        wide = _conf(master, {"spark.executor.instances": "6"}, lanes=12)
        assert (wide["spark.executor.instances"], wide["spark.executor.cores"]) == ("6", "2")
        assert _conf(master, lanes=1)["spark.executor.instances"] == "1"
        assert _conf(master, lanes=1)["spark.executor.memoryOverhead"] == "384m"


@pytest.mark.parametrize(
    ("python", "name", "path"),
    [
        ("/usr/lib/lanes/bin/python3", "python3", "/usr/lib/lanes/bin:"),
        ("./environment/bin/python", "python", "environment/bin:"),
    ],
)
def test_a_python_of_the_executors_own_is_a_name_on_their_path(python: str, name: str, path: str) -> None:
    given = {"spark.pyspark.python": python}
    assert python_name(given, "/venv/bin/python") == name
    assert _conf("yarn", given)["spark.executorEnv.PATH"].startswith(path)
    assert python_name({}, "/venv/bin/python") == "/venv/bin/python"
    assert "spark.executorEnv.PATH" not in _conf("yarn")


def test_whether_others_can_read_what_executors_are_sent() -> None:
    assert not is_encrypted({"spark.authenticate": "true", "spark.network.crypto.enabled": "false"})
    assert is_encrypted({"spark.network.crypto.enabled": "true"})
    assert is_encrypted({"spark.ssl.rpc.enabled": "TRUE"})
