"""A group's own checkpoint where the ledger knows less: offsets from before a flow was taken over from MirrorMaker 2.

A checkpoint says where the group may go on that stands at its upstream offset; whoever stands there or further may go on
there too. It never skips, and it is never exact here. Used only for what lies before the ledger's first page, and only if it
fits to it: one that does not is about an earlier topic of that name. Pure; called by ``control.group_translation``.
"""

from __future__ import annotations

from mirrorspark.names import TopicPartition
from mirrorspark.offsets.group_sync import Synced
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import Reason, Translation

__all__ = ["not_before_checkpoint"]


def not_before_checkpoint(
    answer: Translation, store: LedgerStore, remote: TopicPartition, upstream_offset: int, checkpoint: Synced | None
) -> Translation:
    """The answer, or the checkpoint's where that is closer."""
    pages = store.pages(remote)
    if checkpoint is None or not pages or answer.reason is not Reason.BEFORE_LEDGER:
        return answer
    fits = checkpoint.upstream <= pages[0].upstream_start and checkpoint.downstream <= pages[0].downstream_start
    is_closer = answer.downstream_offset is None or checkpoint.downstream > answer.downstream_offset
    if not fits or not is_closer or checkpoint.upstream > upstream_offset:
        return answer
    return Translation(checkpoint.downstream, False, Reason.CHECKPOINT)
