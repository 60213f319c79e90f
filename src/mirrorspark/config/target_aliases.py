"""Two names for one target: flows from the same source would lead each other's books, which are named after the source.

``load`` asks once for all enabled flows of a file. Clusters are told apart by their addresses; no cluster is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mirrorspark.config.findings import Findings
from mirrorspark.settings import FlowSettings

__all__ = ["check_target_aliases"]


def check_target_aliases(flows: Sequence[FlowSettings], findings: Findings) -> None:
    for one, other in itertools.combinations(flows, 2):
        is_same_place = bool(set(one.target.bootstrap) & set(other.target.bootstrap))
        if one.flow.books == other.flow.books and one.target.alias != other.target.alias and is_same_place:
            findings.error(
                f"{other.target.alias}.bootstrap.servers",
                f"{one.target.alias} and {other.target.alias} are one cluster: {one.flow} and {other.flow} would take the "
                f"flow from each other. Use one alias, or set {one.target.alias}.group.id and "
                f"{other.target.alias}.group.id to different names and keep their topics apart",
            )
