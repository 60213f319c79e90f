"""A refused request names the ACL that it lacked."""

from __future__ import annotations

import pytest

from mirrorspark.cluster.broker_errors import broker_error
from mirrorspark.cluster.missing_acl import missing_acl


@pytest.mark.parametrize(
    ("code", "request_name", "says"),
    [
        (29, "Produce", "the ACL Write on the topic"),
        (29, "FetchRequest", "the ACL Read on the topic"),
        (30, "OffsetCommit", "the ACL Read on the group"),
        (31, "DescribeAcls", "the ACL Describe on the cluster"),
        (53, "InitProducerId", "the ACL Write on the transactional id"),
        (29, "SomethingNew", "an ACL on the topic"),
    ],
)
def test_the_acl_is_named(code: int, request_name: str, says: str) -> None:
    assert f"our user lacks {says}" in str(broker_error(code, request_name, "orders-0"))


def test_other_errors_say_nothing_of_acls() -> None:
    assert missing_acl(6, "Produce") == ""
