"""ACLs of remote topics by MirrorMaker 2's rules (reference 2.6), each test named after its rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorspark.names import TopicAcl
from mirrorspark.plan.acl_rules import AclChanges, AclNote, AclRules, acl_changes

KNOWN = ("orders", "ordinary", "clicks")
RULES = AclRules(lambda name: name in (*KNOWN, "*"), lambda name: f"east.{name}", KNOWN)
IDENTITY = AclRules(lambda name: name in (*KNOWN, "*"), lambda name: name, KNOWN)
PREFIXED = AclRules(RULES.wants, RULES.remote, KNOWN, prefixed=True)


def acl(operation: str = "READ", permission: str = "ALLOW", name: str = "orders", pattern: str = "LITERAL") -> TopicAcl:
    return TopicAcl(pattern, name, "User:ann", "10.0.0.1", operation, permission)


def on_target(one: TopicAcl, rules: AclRules = RULES) -> tuple[list[TopicAcl], AclNote | None]:
    found, notes = rules.wanted([one])
    return sorted(found), notes.get(one)


# -- rule 2.6.2: which ones --------------------------------------------------------------------------------------------


def test_2_6_2_literal_on_a_mirrored_topic_is_kept() -> None:
    assert on_target(acl()) == ([acl(name="east.orders")], None)


def test_2_6_2_a_topic_that_is_not_mirrored_has_none() -> None:
    assert on_target(acl(name="secret")) == ([], AclNote.NOT_MIRRORED)


def test_2_6_2_prefixed_is_dropped() -> None:
    assert on_target(acl(pattern="PREFIXED", name="ord")) == ([], AclNote.PREFIXED_LEFT_OUT)


# -- rule 2.6.3: which rights ------------------------------------------------------------------------------------------


def test_2_6_3_allow_write_is_dropped() -> None:
    assert on_target(acl("WRITE")) == ([], AclNote.WRITE_NOT_GRANTED)


def test_2_6_3_allow_all_becomes_read() -> None:
    assert on_target(acl("ALL")) == ([acl("READ", name="east.orders")], AclNote.ALL_BECOMES_READ)


@pytest.mark.parametrize("operation", ["ALL", "WRITE", "READ", "DESCRIBE", "ALTER", "DELETE"])
def test_2_6_3_deny_is_unchanged(operation: str) -> None:
    assert on_target(acl(operation, "DENY")) == ([acl(operation, "DENY", name="east.orders")], None)


@pytest.mark.parametrize(
    "operation", ["READ", "DESCRIBE", "ALTER", "DELETE", "CREATE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"]
)
def test_2_6_3_other_rights_are_unchanged(operation: str) -> None:
    assert on_target(acl(operation)) == ([acl(operation, name="east.orders")], None)


# -- rule 2.6.4: names -------------------------------------------------------------------------------------------------


def test_2_6_4_renamed_by_the_policy() -> None:
    assert on_target(acl(), IDENTITY) == ([acl()], None)


# -- rule 2.6.5: all topics --------------------------------------------------------------------------------------------


def test_2_6_5_all_topics_becomes_the_prefix_of_remote_topics() -> None:
    """MirrorMaker 2 would write the literal ``east.*``, which matches no topic."""
    found, note = on_target(acl(name="*"))
    assert found == [acl(name="east.", pattern="PREFIXED")]
    assert note is AclNote.ALL_TOPICS_BECOMES_PREFIX


def test_2_6_5_all_topics_and_all_rights() -> None:
    found, note = on_target(acl("ALL", name="*"))
    assert found == [acl("READ", name="east.", pattern="PREFIXED")]
    assert note is AclNote.ALL_TOPICS_BECOMES_PREFIX
    assert on_target(acl("WRITE", name="*")) == ([], AclNote.WRITE_NOT_GRANTED)


def test_2_6_5_with_identity_all_topics_stays() -> None:
    assert on_target(acl(name="*"), IDENTITY) == ([acl(name="*")], AclNote.REACHES_ALL_TOPICS)
    narrow = AclRules(lambda name: name == "orders", lambda name: name, ("orders",))
    assert on_target(acl(name="*"), narrow) == ([], AclNote.NOT_MIRRORED)


def test_2_6_5_a_policy_that_rewrites_names_has_no_prefix() -> None:
    rewriting = AclRules(lambda name: True, lambda name: f"{name}.copy", KNOWN, prefixed=True)
    assert on_target(acl(name="*"), rewriting) == ([], AclNote.PREFIX_UNSUITED)
    assert on_target(acl(pattern="PREFIXED", name="ord"), rewriting) == ([], AclNote.PREFIX_UNSUITED)


# -- our own: prefixed ACLs --------------------------------------------------------------------------------------------


def test_prefixed_acls_are_carried_where_wanted() -> None:
    assert on_target(acl(pattern="PREFIXED", name="ord"), PREFIXED) == (
        [acl(pattern="PREFIXED", name="east.ord")],
        None,
    )
    assert on_target(acl("ALL", pattern="PREFIXED", name="ord"), PREFIXED)[0] == [
        acl("READ", pattern="PREFIXED", name="east.ord")
    ]


def test_a_prefix_that_no_mirrored_topic_has_is_left_out() -> None:
    assert on_target(acl(pattern="PREFIXED", name="secret"), PREFIXED) == ([], AclNote.NOT_MIRRORED)


# -- differences -------------------------------------------------------------------------------------------------------

A, B, C = (acl(name=name) for name in "abc")


def test_nothing_differs() -> None:
    changes = acl_changes([A], [A, B], [A], revoke=True)
    assert changes == AclChanges(granted=frozenset([A]))
    assert not changes


def test_what_is_missing_is_granted_and_remembered() -> None:
    assert acl_changes([A, B], [A], [], revoke=False) == AclChanges(frozenset([B]), frozenset(), frozenset([B]))


def test_2_6_4_nothing_is_revoked_unless_wanted() -> None:
    assert acl_changes([], [A], [A], revoke=False) == AclChanges(granted=frozenset([A]))


def test_only_what_the_mirror_granted_is_revoked() -> None:
    changes = acl_changes([C], [A, B, C], [A, C], revoke=True)
    assert changes == AclChanges(frozenset(), frozenset([A]), frozenset([C]))


def test_what_somebody_took_away_by_hand_is_granted_again_if_wanted_else_forgotten() -> None:
    assert acl_changes([A], [], [A], revoke=True).grant == {A}
    assert acl_changes([], [], [A], revoke=True) == AclChanges()


acls = st.frozensets(st.sampled_from([acl(name=name) for name in "abcdef"]))


@given(acls, acls, acls, st.booleans())
def test_any_difference_is_settled_in_one_pass_and_foreign_acls_stay(
    wanted: frozenset[TopicAcl], there: frozenset[TopicAcl], granted: frozenset[TopicAcl], revoke: bool
) -> None:
    changes = acl_changes(wanted, there, granted, revoke=revoke)
    after = (there | changes.grant) - changes.revoke
    assert wanted <= after
    assert (there - granted) <= after
    assert not acl_changes(wanted, after, changes.granted, revoke=revoke)
