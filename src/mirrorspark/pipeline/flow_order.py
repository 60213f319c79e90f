"""What the driver orders of whoever runs a flow's lanes: Spark's data source reads it from a file, the bridge from a pipe.

It holds the clusters' credentials, so it never stands in an option, an argument or the environment.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from pathlib import Path

from mirrorspark.settings import FlowSettings

__all__ = ["FlowOrder", "stop_mark"]


@dataclass(frozen=True)
class FlowOrder:
    """What the driver leaves for the data source: one file per flow, mode 0600."""

    settings: FlowSettings
    generation: int
    lanes: int = 0
    """How many tasks an epoch has; 0: tasks.max."""
    resized: int | None = None
    """The version of the plan that says so."""

    def write(self, path: Path) -> None:
        """At once: whoever reads meanwhile has the one before."""
        made = path.with_name(f"{path.name}.new")
        made.touch(mode=0o600)
        made.chmod(0o600)
        made.write_bytes(pickle.dumps(self))
        os.replace(made, path)

    @staticmethod
    def read(path: Path) -> FlowOrder:
        order = pickle.loads(path.read_bytes())
        assert isinstance(order, FlowOrder)
        return order


def stop_mark(order: Path) -> Path:
    """A file beside the order that says: no further epoch."""
    return order.with_name("stop")
