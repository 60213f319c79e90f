"""The real MirrorMaker 2 copies a workload, and the checker agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirrorspark.errors import LabError
from mirrorspark.lab.catch_up import wait_until_caught_up
from mirrorspark.lab.checker import check_copy
from mirrorspark.lab.cluster_of_brokers import ClusterOfBrokers
from mirrorspark.lab.mirror_maker import Endpoint, MirrorMaker, Variant, flow_properties
from mirrorspark.lab.workload import Workload


@pytest.mark.parametrize("variant", ["default", pytest.param("tuned", marks=pytest.mark.slow)])
def test_mirror_maker_copies_every_record_as_it_was(
    source_cluster: ClusterOfBrokers,
    target_cluster: ClusterOfBrokers,
    topic_name: str,
    tmp_path: Path,
    variant: Variant,
) -> None:
    workload = Workload(source_cluster.bootstrap, topic_name, 2, seed=4)
    workload.create_topic()
    workload.produce(300)
    source = Endpoint(f"east-{variant}", source_cluster.bootstrap)
    target = Endpoint(f"west-{variant}", target_cluster.bootstrap)
    properties = flow_properties(source, target, topics=topic_name, variant=variant)
    remote_topic = f"{source.alias}.{topic_name}"
    with MirrorMaker(properties, tmp_path) as mirror:
        assert mirror.is_alive
        wait_until_caught_up(source_cluster.bootstrap, target_cluster.bootstrap, topic_name, remote_topic)
    assert not mirror.is_alive
    verdict = check_copy(target_cluster.bootstrap, remote_topic, workload.ledger)
    assert verdict.is_clean, verdict.report()


def test_mirror_maker_that_dies_tells_why(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="MirrorMaker 2 ended with code") as caught:
        MirrorMaker({"clusters": "a,b", "a->b.enabled": "true"}, tmp_path).start()
    assert "its log ends" in str(caught.value)
