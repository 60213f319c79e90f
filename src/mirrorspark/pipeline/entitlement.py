"""Whether an attempt that has just put its name on partitions is still the one to append to them (part of invariant B).

Of two attempts that look at a partition at the same time, both may find that nobody holds it. But whoever is to have it
instead of us was named, by a newer plan or a newer epoch of this lane, before it looked. So either it has found the name
that we committed and shuts us out, or we learn of it here, between that commit and our first append: by the plan we let the
partition go, by the epoch we end, or take a newer one and look again. Called by ``recovery``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import Writer, is_newest
from mirrorspark.errors import ClusterError, Fenced

__all__ = ["Entitlement", "nothing_to_follow"]

log = logging.getLogger("mirrorspark.lane")


async def nothing_to_follow(deadline: Deadline) -> None:
    """Where there is no plan: somebody else says which partitions are to be owned."""


class Entitlement:
    """``plan_followed`` returns once the attempt obeys every plan that was published before it was called. ``gives_way``:
    the attempt ends when there is a newer one of its lane, rather than take a newer epoch itself."""

    def __init__(
        self,
        target: ClusterClient,
        *,
        plan_followed: Callable[[Deadline], Awaitable[None]] = nothing_to_follow,
        gives_way: bool = False,
    ) -> None:
        self._target = target
        self._plan_followed = plan_followed
        self._gives_way = gives_way

    async def holds(self, writer: Writer, deadline: Deadline) -> bool:
        """False where a newer epoch is needed. A writer without a transactional id cannot be told from its successors."""
        await self._plan_followed(deadline)
        if not writer.transactional_id or await self._is_newest(writer, deadline):
            return True
        if self._gives_way:
            raise Fenced(f"{writer.transactional_id} is held by a newer attempt")
        return False

    async def may_obtain(self, writer: Writer, deadline: Deadline) -> None:
        """Before a newer epoch is taken. Raises Fenced where that would shut out a newer attempt that this one gives way to:
        such a one may have its epoch already and its name on no partition yet."""
        if self._gives_way and writer.transactional_id and not await self._is_newest(writer, deadline):
            raise Fenced(f"{writer.transactional_id} is held by a newer attempt")

    async def _is_newest(self, writer: Writer, deadline: Deadline) -> bool:
        try:
            return await is_newest(self._target, writer, deadline)
        except ClusterError as error:
            if "api_key" not in error.facts:  # only of a broker that does not know the request
                raise
            log.warning("%s: whether it is the newest attempt cannot be asked: %s", writer.transactional_id, error)
            return True
