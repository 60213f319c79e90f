"""Does the ledger tell where every single record went? Asked of the two logs themselves, once a flow has stopped.

Called by journeys. Only for sources from which nothing vanishes meanwhile: the n-th record that a consumer sees on the
source is then the n-th on the target, and that is what the ledger must say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mirrorspark.lab.plain_records import read_records
from mirrorspark.names import TopicPartition
from mirrorspark.offsets.internal_topics import ledger_topic
from mirrorspark.offsets.ledger_store import LedgerStore
from mirrorspark.offsets.translation import translate

__all__ = ["LedgerVerdict", "check_ledger", "read_ledger"]

FAULTS_KEPT_MAX = 5


@dataclass
class LedgerVerdict:
    records: int = 0
    faults: int = 0
    first_faults: list[str] = field(default_factory=list)
    pages: int = 0
    runs: int = 0

    def note(self, fault: str) -> None:
        self.faults += 1
        if len(self.first_faults) < FAULTS_KEPT_MAX:
            self.first_faults.append(fault)

    def __str__(self) -> str:
        told = f"{self.records} records in {self.runs} runs on {self.pages} pages, {self.faults} faults"
        return "\n".join([told, *self.first_faults])


def read_ledger(target: str, books: str) -> LedgerStore:
    store = LedgerStore()
    for record in read_records(target, ledger_topic(books), isolation="read_uncommitted")[0]:
        store.fold(record.key or b"", record.value)
    return store


def check_ledger(source: str, target: str, topic: str, remote: str, books: str) -> LedgerVerdict:
    """``source`` and ``target`` are bootstrap servers, ``books`` names the flow's own topics."""
    store = read_ledger(target, books)
    verdict = LedgerVerdict()
    copies = read_records(target, remote)
    for number, originals in read_records(source, topic).items():
        at = TopicPartition(remote, number)
        verdict.pages += len(store.pages(at))
        verdict.runs += sum(page.run_count for page in store.pages(at))
        verdict.records += len(originals)
        if len(originals) != len(copies[number]):
            verdict.note(f"{at}: {len(originals)} records there, {len(copies[number])} here")
        for original, copy in zip(originals, copies[number], strict=False):
            found = translate(store, at, original.offset)
            if found.downstream_offset != copy.offset or not found.exact:
                verdict.note(f"{at}: {original.offset} lies at {copy.offset}, the ledger says {found}")
        if originals:
            found = translate(store, at, originals[-1].offset + 1)
            if found.downstream_offset != copies[number][-1].offset + 1 or not found.exact:
                verdict.note(f"{at}: its end is {copies[number][-1].offset + 1}, the ledger says {found}")
    return verdict
