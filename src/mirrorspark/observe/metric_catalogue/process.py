"""Series of the processes themselves: the driver's by prometheus-client, and Spark's JVM by the JMX exporter's names.

Lanes are processes of their own: their CPU is ``mirrorspark_lane_cpu_seconds_total``.
"""

from __future__ import annotations

from mirrorspark.observe.metric_catalogue.metric import Metric, MetricKind

__all__ = ["JVM", "PROCESS"]

_G, _C = MetricKind.GAUGE, MetricKind.COUNTER
_DRIVER = "prometheus-client, from /proc of the driver's Python process; lanes and Spark's JVM are other processes."
_MEMORY = "MemoryMXBean of the JVM of Spark's driver, asked every 2 s while somebody scrapes."
_THREADS = "ThreadMXBean of the JVM of Spark's driver."
_COLLECTORS = "GarbageCollectorMXBean of the JVM of Spark's driver; only grows, so that rate may be used."

PROCESS: tuple[Metric, ...] = (
    Metric("process_cpu_seconds_total", _C, (), "s", "CPU of the driver.", _DRIVER),
    Metric("process_resident_memory_bytes", _G, (), "bytes", "Memory of the driver that is in RAM.", _DRIVER),
    Metric("process_virtual_memory_bytes", _G, (), "bytes", "Address space of the driver.", _DRIVER),
    Metric("process_start_time_seconds", _G, (), "s", "When the driver began, Unix time.", _DRIVER),
    Metric("process_open_fds", _G, (), "files", "Open files and connections of the driver.", _DRIVER),
    Metric("process_max_fds", _G, (), "files", "How many it may open.", _DRIVER),
)
JVM: tuple[Metric, ...] = (
    Metric("jvm_memory_used_bytes", _G, ("area",), "bytes", "Memory in use, heap and nonheap.", _MEMORY),
    Metric("jvm_memory_committed_bytes", _G, ("area",), "bytes", "Memory that the system has given for it.", _MEMORY),
    Metric("jvm_memory_max_bytes", _G, ("area",), "bytes", "Memory that it may take, -1 for no limit.", _MEMORY),
    Metric(
        "jvm_memory_bytes_used",
        _G,
        ("area",),
        "bytes",
        "Memory in use, by the name of exporters before 1.0.",
        "As jvm_memory_used_bytes.",
    ),
    Metric("jvm_threads_current", _G, (), "threads", "Threads that live now.", _THREADS),
    Metric("jvm_threads_daemon", _G, (), "threads", "Daemons among them.", _THREADS),
    Metric("jvm_threads_peak", _G, (), "threads", "The most that lived at one time.", _THREADS),
    Metric("jvm_gc_collection_seconds_sum", _G, ("gc",), "s", "Time in garbage collections.", _COLLECTORS),
    Metric("jvm_gc_collection_seconds_count", _G, ("gc",), "collections", "Garbage collections.", _COLLECTORS),
)
"""Not there where no Spark runs (a process that only emits heartbeats), before it has started, and while it does not
answer. Without a local master executors are JVMs elsewhere, of which Spark itself tells."""
