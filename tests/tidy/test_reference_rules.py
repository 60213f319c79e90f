"""Which test holds which rule of MirrorMaker 2's configuration, topics, settings, ACLs and heartbeats.

The rules are numbered as in the reference that the project works from (sections 1 to 2.6 and 2.12). A test is named after
its rule where it has no other purpose; broker tests that show several are listed here. What is not there any more fails.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)

RULES: dict[str, tuple[str, ...]] = {
    # -- configuration -------------------------------------------------------------------------------------------------
    "1.1 prefixes": ("config/test_load.py", "config/test_mm2_rules.py::test_aliases_with_dots"),
    "1.1 derivation 1": ("config/test_mm2_rules.py::test_rule_1_",),
    "1.1 derivation 2": ("config/test_mm2_rules.py::test_rule_2_", "config/test_providers.py"),
    "1.1 derivation 3": ("config/test_mm2_rules.py::test_rule_3_", "config/test_catalogue.py::test_rule_1_1_keys_of_w"),
    "1.1 derivation 4": ("config/test_mm2_rules.py::test_rule_4_",),
    "1.1 derivation 5": ("config/test_mm2_rules.py::test_rules_5_and_6_",),
    "1.1 derivation 6": ("config/test_mm2_rules.py::test_rules_5_and_6_", "config/test_mm2_rules.py::test_rule_6_"),
    "1.1 --clusters": (
        "control/test_run_command.py::test_flows_into_the_chosen_clusters",
        "config/test_load.py::test_no_flow_into_the_chosen_cluster",
    ),
    "1.2": ("config/test_mm2_connectors.py::test_1_2_",),
    "1.3": ("config/test_mm2_rules.py::test_sections_1_3_", "config/test_mm2_rules.py::test_section_1_3_"),
    "1.4": ("config/test_mm2_rules.py::test_section_1_4_", "config/test_mm2_connectors.py::test_1_4_"),
    "1.5": ("config/test_mm2_connectors.py::test_1_5_",),
    "1.6": ("plan/test_upstream_clusters.py::test_1_6_",),
    "1.7": ("plan/test_group_filter.py::test_1_4_default_lists", "plan/test_config_rules.py::test_2_5_8_"),
    "1.8": (
        "config/test_mm2_rules.py::test_known_keys_without_meaning_are_answered",
        "config/test_catalogue.py::test_every_key_of_mirror_maker_and_connect_is_known",
    ),
    "1.9": ("config/test_mm2_connectors.py::test_1_9_", "config/test_catalogue.py::test_rule_1_1_security_names"),
    # -- which topics --------------------------------------------------------------------------------------------------
    **{f"2.1.{n}": (f"plan/test_topic_filter.py::test_2_1_{n}_",) for n in (1, 2, 3, 4, 5, 7, 8)},
    "2.1.6": ("plan/test_topic_naming.py::test_2_1_6_", "plan/test_topic_filter.py::test_2_1_6_"),
    "2.1.9": ("plan/test_desired_topics.py::test_2_1_9_",),
    "2.2": ("plan/test_topic_filter.py::test_2_2_", "journeys/test_active_active.py"),
    "2.3": ("plan/test_topic_naming.py::test_2_3_", "plan/test_replication_policy.py::test_2_3_"),
    # -- topics and partitions -----------------------------------------------------------------------------------------
    "2.4.1": ("control/test_reconcile.py::test_2_4_1_", "control/test_topic_sync.py"),
    "2.4.2": ("plan/test_desired_topics.py::test_2_4_2_", "plan/test_config_rules.py::test_2_4_2_"),
    "2.4.3": ("plan/test_desired_topics.py::test_2_4_3_", "control/test_reconcile.py::test_2_4_4_"),
    "2.4.4": (
        "control/test_reconcile.py::test_2_4_4_",
        "cluster/test_cluster_admin.py::test_each_refused_topic",
        "journeys/test_many_topics.py::test_topics_created_at_once",
    ),
    "2.4.5": ("plan/test_desired_topics.py::test_2_4_5_", "control/test_reconcile.py::test_2_4_5_"),
    "2.4.6": (
        "journeys/test_many_topics.py::test_topics_created_at_once",
        "journeys/test_plan_inside_epoch.py::test_new_topics_partitions",
    ),
    "2.4.7": ("plan/test_desired_topics.py::test_2_4_7_", "control/test_reconcile.py::test_2_4_7_"),
    "2.4.8": ("journeys/test_never_silent.py",),
    "2.4.9": ("plan/test_lanes.py::test_2_4_9_",),
    "2.4.10": ("control/test_reconcile.py::test_2_4_10_", "control/test_heartbeats.py::test_2_12_1_and"),
    "2.4.11": ("control/test_reconcile.py::test_a_new_topic_that_stays_out_of_sight",),
    # -- settings ------------------------------------------------------------------------------------------------------
    "2.5.1": ("plan/test_config_rules.py::test_2_5_1_", "control/test_config_sync.py::test_2_5_1_"),
    **{f"2.5.{n}": (f"plan/test_config_rules.py::test_2_5_{n}_",) for n in (2, 3, 4, 5, 6)},
    "2.5.7": ("control/test_config_sync.py::test_2_5_7_",),
    "2.5.8": ("plan/test_config_rules.py::test_2_5_8_", "plan/test_desired_topics.py::test_2_5_8_"),
    "2.5.9": ("control/test_config_sync.py::test_2_5_1_", "plan/test_config_rules.py::test_2_4_2_"),
    # -- ACLs ----------------------------------------------------------------------------------------------------------
    "2.6.1": ("control/test_acl_sync.py::test_2_6_1_",),
    **{f"2.6.{n}": (f"plan/test_acl_rules.py::test_2_6_{n}_",) for n in (2, 3, 4, 5)},
    "2.6.6": ("control/test_acl_sync.py::test_2_6_6_",),
    # -- heartbeats ----------------------------------------------------------------------------------------------------
    "2.12.1": ("control/test_heartbeats.py::test_2_12_1_and", "offsets/test_heartbeat.py"),
    "2.12.2": ("control/test_heartbeats.py::test_2_12_1_and_2_12_2", "config/test_mm2_connectors.py::test_2_12_2_"),
    "2.12.3": (
        "plan/test_upstream_clusters.py::test_2_12_3_",
        "journeys/test_topologies.py::test_flows_side_by_side_fail_and_change_alone",
    ),
    "2.12.4": ("plan/test_upstream_clusters.py::test_2_12_4_",),
    "2.12.5": ("plan/test_upstream_clusters.py::test_2_12_5_",),
}
"""Rule -> file, or file::beginning of a test's name."""


@pytest.mark.parametrize(("rule", "place"), [(rule, place) for rule, places in RULES.items() for place in places])
def test_a_rule_has_its_tests(rule: str, place: str) -> None:
    name, _, beginning = place.partition("::")
    found = _TEST.findall((TESTS / name).read_text(encoding="utf-8"))
    assert any(test.startswith(beginning) for test in found), f"{rule}: {place} is not there"


def test_every_test_that_is_named_after_a_rule_belongs_to_one() -> None:
    """A rule that does not exist is a slip of the pen."""
    numbers = {rule.split()[0] for rule in RULES}
    ours = ("config", "plan", "control")
    for path in sorted(path for room in ours for path in (TESTS / room).rglob("test_*.py")):
        for test in _TEST.findall(path.read_text(encoding="utf-8")):
            for found in re.findall(r"(?<=_)(2_(?:[1-6]|12)(?:_\d+)?)(?=_)", test):
                parts = found.split("_")
                known = {".".join(parts), ".".join(parts[:2])} & numbers
                assert known, f"{path}: {test}: the reference has no rule {'.'.join(parts)}"
