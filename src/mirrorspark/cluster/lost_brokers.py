"""Brokers that stand still: noticed before their requests run into their timeouts.

A broker that was frozen, or cut off without a word, holds its connections and answers nothing; a request to it fails only
after half a minute. The cluster knows sooner: it fences such a broker and gives its partitions to others
(broker.session.timeout.ms, 9 s by default). So while a broker owes us an answer for long the others are asked, and one that
they no longer list is hung up on: its requests fail at once, and go where its partitions are now. Run by whoever carries,
one task for each cluster.
"""

from __future__ import annotations

import asyncio
import logging

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.errors import ClusterError

__all__ = ["hang_up_on_lost_brokers"]

log = logging.getLogger("mirrorspark.cluster")

LOOK_INTERVAL_S = 1.0
LOOK_TIMEOUT_S = 10.0


async def hang_up_on_lost_brokers(client: ClusterClient, end: asyncio.Event) -> None:
    """Until ``end``. Raises what is not retriable."""
    while not end.is_set():
        await asyncio.sleep(LOOK_INTERVAL_S)
        silent = client.silent_nodes()
        if not silent:
            continue
        try:
            await client.refresh([], Deadline(LOOK_TIMEOUT_S))
        except ClusterError as error:
            if not error.retriable:
                raise
            log.warning(
                "cluster %s: brokers %s do not answer, nor does another: %s", client.alias, sorted(silent), error
            )
            continue
        for node in sorted(silent - set(client.nodes)):
            log.warning(
                "cluster %s: broker %d does not answer, and the cluster does not list it any more", client.alias, node
            )
            client.hang_up(node)
