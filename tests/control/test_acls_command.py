"""``mirrorspark acls``: the three forms, who the user is, and exit codes. What is listed is ``test_required_acls``'."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mirrorspark.__main__ import app
from mirrorspark.control.acl_list import topics_on_source
from mirrorspark.lab.clients import create_topic
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.names import Flow
from mirrorspark.settings import ClusterSettings, FlowSettings, parse_bootstrap

PROPERTIES = """\
clusters = east, west
east.bootstrap.servers = e1:9092, e2:9092
west.bootstrap.servers = w:9092
west.security.protocol = SASL_SSL
west.sasl.mechanism = SCRAM-SHA-512
west.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username="mirror" password="geheim";
east->west.enabled = true
east->west.topics = orders, pay.*, .*-eu
west->east.enabled = false
west->east.emit.heartbeats.enabled = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(PROPERTIES)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["acls", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_lines_for_a_shell(file: Path) -> None:
    code, out, err = run(file)
    assert (code, "geheim" in out + err) == (0, False)
    lines = [line for line in out.splitlines() if line and not line.startswith("#")]
    assert len(set(lines)) == len(lines)
    for line in lines:
        command, _, why = line.partition("  # ")
        words = shlex.split(command)
        assert words[0] == "kafka-acls.sh"
        assert words.count("--add") == words.count("--allow-principal") == words.count("--operation") == 1
        assert why
    assert "--bootstrap-server e1:9092,e2:9092" in lines[0]
    assert any("--operation Read --topic '*'" in line and "wider than the filter" in line for line in lines)
    assert any(
        "--transactional-id '__mirrorspark-east->west-' --resource-pattern-type prefixed" in line for line in lines
    )
    assert any(line.partition("  #")[0].endswith("--operation Alter --cluster") for line in lines)
    assert any("--topic mirrorspark-plan.east.internal" in line and "User:mirror" in line for line in lines)


def test_json_for_machines(file: Path) -> None:
    code, out, _ = run(file, "--json", "--principal", "east=User:x")
    found = json.loads(out)
    assert code == 0
    assert [one["principal"] for one in found["clusters"]] == ["User:x", "User:mirror"]
    assert run(file, "--format", "json", "--principal", "east=User:x")[1] == out
    for cluster in found["clusters"]:
        for acl in cluster["acls"]:
            assert acl["pattern_type"] in ("LITERAL", "PREFIXED")
            assert acl["resource_type"] in ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID")


def test_users_for_strimzi(file: Path) -> None:
    code, out, _ = run(file, "--format", "strimzi")
    east, west = yaml.safe_load_all(out)
    assert code == 0
    assert east["metadata"] == {"name": "mirrorspark-east", "labels": {"strimzi.io/cluster": "east"}}
    assert west["metadata"]["name"] == "mirror"
    assert west["spec"]["authentication"] == {"type": "scram-sha-512"}
    places = [json.dumps(one["resource"]) for one in west["spec"]["authorization"]["acls"]]
    assert len(set(places)) == len(places), "one entry for each resource"
    assert {"resource": {"type": "cluster"}, "operations": ["Alter"], "host": "*"} in west["spec"]["authorization"][
        "acls"
    ]


def test_only_flows_into_the_clusters_named(file: Path) -> None:
    file.write_text(PROPERTIES.replace("west->east.enabled = false", "west->east.enabled = true"))
    assert "__mirrorspark-west->east" in run(file)[1]
    code, out, _ = run(file, "--clusters", "west")
    assert (code, "__mirrorspark-west->east" in out) == (0, False)
    assert run(file, "--flow", "east->west")[1] == out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "xml"], "--format xml: no such form"),
        (["--principal", "mirror"], "--principal mirror: not ALIAS=User:NAME"),
        (["--principal", "north=User:x"], "--principal north=…: not a cluster of these flows; there is east, west"),
        (["--flow", "a->b"], "not an enabled flow"),
    ],
)
def test_an_option_that_is_wrong_is_named(file: Path, arguments: list[str], says: str) -> None:
    code, out, err = run(file, *arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_a_file_that_does_not_say_who_we_are(file: Path) -> None:
    file.write_text(
        PROPERTIES.replace("SCRAM-SHA-512", "OAUTHBEARER").replace("scram.Scram", "oauthbearer.OAuthBearer")
    )
    text = file.read_text().replace('username="mirror" password="geheim"', "")
    file.write_text(text + "west.sasl.oauthbearer.token.endpoint.url = file:/nowhere\n")
    code, _, err = run(file)
    assert code == 2
    assert "--principal west=User:…: missing" in err
    assert run(file, "--principal", "west=User:m")[0] == 0


def test_a_strimzi_file_says_the_same(file: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.properties"
    plain.write_text("\n".join(line for line in PROPERTIES.splitlines() if not line.startswith("west.s")))
    written = CliRunner().invoke(app, ["convert", str(plain), "--to", "strimzi"])
    (tmp_path / "mirror.yaml").write_text(written.stdout)
    assert run(tmp_path / "mirror.yaml", "--json")[1] == run(plain, "--json")[1]


def test_topics_of_the_source_written_out(
    source_cluster: ClusterOfBrokers, in_loop: Callable[..., Any], topic_name: str
) -> None:
    create_topic(source_cluster.bootstrap, topic_name, 1)
    source = ClusterSettings("east", parse_bootstrap(source_cluster.bootstrap, "east"))
    target = ClusterSettings("west", source.bootstrap)
    settings = FlowSettings(Flow("east", "west"), source, target, topics=f".*{topic_name[1:]}")
    listed = in_loop(topics_on_source(settings))
    assert [name for name in listed if not name.endswith("heartbeats")] == [topic_name]
