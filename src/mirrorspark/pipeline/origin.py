"""What a mirror wrote on the source: told by the producer id in a batch's header, so that it is not carried on.

For flows whose topics keep their names (``ReplicationPolicy.needs_origin_check``); the others have no ``OriginCheck``. The
rule (docs/decisions/0009): such a flow carries what the source's own producers wrote, and nothing that any mirror wrote. It
costs one dictionary look-up for each batch. An id that was never met is looked up in the source's registry, read to its end
as of after the fetch: a lane is entered there before its first append. Then the brokers are asked whether the id belongs to
a lane's transactional id, in case the registry was lost. While the registry cannot be read nothing is decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from mirrorspark.cluster.cluster_client import ClusterClient
from mirrorspark.cluster.deadline import Deadline
from mirrorspark.cluster.writer import find_transactional_ids
from mirrorspark.errors import ClusterError
from mirrorspark.events import Event, EventKind
from mirrorspark.names import Flow
from mirrorspark.offsets.internal_topics import WRITERS_TOPIC
from mirrorspark.offsets.writer_registry import MirrorWriter, flow_of_transactional_id, told_key
from mirrorspark.pipeline.writers import WriterRegistry
from mirrorspark.settings import FlowSettings
from mirrorspark.wire.record_batch import Batch

__all__ = ["OriginCheck"]

log = logging.getLogger("mirrorspark.lane")

NO_PRODUCER_ID = -1
LEARN_TIMEOUT_S = 10.0
VERDICTS_MAX = 250_000
"""Producer ids whose origin is remembered; beyond it local producers are looked up anew. More than one answer can hold."""
SECOND_LOOK_S = 10.0
"""How long brokers that do not answer are asked for transactional ids; then the registry alone decides."""
SECOND_LOOK_PAUSE_S = 0.2


class OriginCheck:
    """One lane's knowledge of who wrote on its source."""

    def __init__(
        self,
        source: ClusterClient,
        settings: FlowSettings,
        *,
        on_target: WriterRegistry,
        report: Callable[[Event], None],
    ) -> None:
        self._source = source
        self._flow = settings.flow
        self._registry = WriterRegistry(source, settings.internal_replication_factor)
        self._on_target = on_target
        self._report = report
        self._verdicts: dict[int, MirrorWriter | None] = {NO_PRODUCER_ID: None}
        self._turn = asyncio.Lock()
        self._skipped: dict[Flow, list[int]] = {}

    async def start(self, deadline: Deadline) -> None:
        """Fails here rather than at the first batch where the registry cannot be had."""
        await self._registry.read(deadline)

    # -- on the carrying loop: once for each batch ------------------------------------------------------------------

    def knows(self, batches: Iterable[Batch]) -> bool:
        """Whether ``skips`` can be asked about these batches; else ``learn`` first."""
        return not self._unknown(batches)

    def skips(self, batch: Batch) -> bool:
        """Whether a mirror wrote it; counted."""
        writer = self._verdicts[batch.producer_id]
        if writer is None:
            return False
        counts = self._skipped.get(writer.flow)
        if counts is None:
            counts = self._skipped[writer.flow] = [0, 0]
        counts[0] += 1
        counts[1] += batch.record_count
        return True

    def is_mirrored(self, batch: Batch) -> bool:
        """The same for a recovery, which counts nothing."""
        return self._verdicts[batch.producer_id] is not None

    @property
    def skipped(self) -> Mapping[str, list[int]]:
        """Batches and records that were left out in this attempt, by the flow that wrote them."""
        return {str(flow): list(counts) for flow, counts in self._skipped.items()}

    # -- learning: once for each producer id ------------------------------------------------------------------------

    async def learn(self, batches: Collection[Batch]) -> None:
        """Find out who wrote these batches, which were fetched before this call. Raises where nobody can say now."""
        while unknown := self._unknown(batches):  # another stream may have made room for its own meanwhile
            async with self._turn:
                await self._learn(unknown - self._verdicts.keys())

    def _unknown(self, batches: Iterable[Batch]) -> set[int]:
        return {batch.producer_id for batch in batches} - self._verdicts.keys()

    async def _learn(self, producer_ids: set[int]) -> None:
        if not producer_ids:
            return
        await self._registry.read(Deadline(LEARN_TIMEOUT_S))
        entered = self._registry.writers
        found = {one: entered[one] for one in producer_ids if one in entered}
        found |= await self._second_look(producer_ids - found.keys())
        await self._tell_not_forwarded({writer.flow for writer in found.values()})
        if len(self._verdicts) + len(producer_ids) > VERDICTS_MAX:
            self._verdicts = {one: writer for one, writer in self._verdicts.items() if writer is not None}
            self._verdicts[NO_PRODUCER_ID] = None
        self._verdicts.update({one: found.get(one) for one in producer_ids})

    async def _second_look(self, producer_ids: set[int]) -> dict[int, MirrorWriter]:
        """Lanes that are not in the registry: it was deleted, or an older mirrorspark wrote without one."""
        found = {}
        for producer_id, name in (await self._transactional_ids(producer_ids)).items():
            flow = flow_of_transactional_id(name)
            if flow is not None:
                log.warning(
                    "%s: producer id %d on cluster %s belongs to %s but is not in %s: taken for a mirror's",
                    *(self._flow, producer_id, self._source.alias, name, WRITERS_TOPIC),
                )
                found[producer_id] = MirrorWriter(producer_id, flow)
        return found

    async def _transactional_ids(self, producer_ids: set[int]) -> dict[int, str]:
        deadline = Deadline(SECOND_LOOK_S)
        while producer_ids:
            try:
                return await find_transactional_ids(self._source, producer_ids)
            except ClusterError as error:
                if not error.retriable or deadline.passed:
                    log.warning(
                        "%s: cluster %s does not say whose producer ids %s are (%s): %s alone decides",
                        *(self._flow, self._source.alias, sorted(producer_ids), error, WRITERS_TOPIC),
                    )
                    break
            await asyncio.sleep(SECOND_LOOK_PAUSE_S)
            await self._source.refresh([])  # a broker that left is no longer asked
        return {}

    async def _tell_not_forwarded(self, writers: set[Flow]) -> None:
        """Records of a third cluster stay here. Told once, unless a flow brings them to the target from there."""
        target = self._flow.target
        third = {flow for flow in writers if flow.source != target}
        if not third:
            return
        deadline = Deadline(LEARN_TIMEOUT_S)
        await self._on_target.read(deadline)
        for writer in third:
            key = told_key(self._flow, writer)
            if key in self._on_target.notes or self._on_target.has_flow(writer.source, target):
                continue
            self._report(
                Event(
                    EventKind.NOT_FORWARDED,
                    f"flow {writer} writes topics on {self._flow.source} that {self._flow} reads; a flow that keeps topic "
                    f"names does not carry on what a mirror wrote, so {target} lacks those records unless a flow "
                    f"{writer.source}->{target} brings them; for a chain set the identity policy on {self._flow}",
                    topic=str(writer),
                )
            )
            await self._on_target.note(key, deadline)
