"""What the JVM of Spark's driver says of itself, and the series made of it. Read by ``control.jvm_watch``."""

from __future__ import annotations

from dataclasses import dataclass

from mirrorspark.observe.sheet import Sheet

__all__ = ["Collector", "JvmFigures", "MemoryArea", "put_jvm"]


@dataclass(frozen=True, slots=True)
class MemoryArea:
    used_bytes: int
    committed_bytes: int
    max_bytes: int
    """-1 for no limit."""


@dataclass(frozen=True, slots=True)
class Collector:
    name: str
    collections: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JvmFigures:
    heap: MemoryArea
    nonheap: MemoryArea
    threads: int
    threads_daemon: int
    threads_peak: int
    collectors: tuple[Collector, ...]


def put_jvm(sheet: Sheet, figures: JvmFigures) -> None:
    for area, memory in (("heap", figures.heap), ("nonheap", figures.nonheap)):
        sheet.put("jvm_memory_used_bytes", memory.used_bytes, area)
        sheet.put("jvm_memory_bytes_used", memory.used_bytes, area)
        sheet.put("jvm_memory_committed_bytes", memory.committed_bytes, area)
        sheet.put("jvm_memory_max_bytes", memory.max_bytes, area)
    sheet.put("jvm_threads_current", figures.threads)
    sheet.put("jvm_threads_daemon", figures.threads_daemon)
    sheet.put("jvm_threads_peak", figures.threads_peak)
    for one in figures.collectors:
        sheet.put("jvm_gc_collection_seconds_sum", one.seconds, one.name)
        sheet.put("jvm_gc_collection_seconds_count", one.collections, one.name)
