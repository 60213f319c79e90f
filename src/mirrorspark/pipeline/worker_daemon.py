"""Spark's daemon that forks Python workers, with our modules loaded before the first fork.

``spark.python.daemon.module`` names it. A worker then starts with everything imported, which saves it a second or two.
"""

from __future__ import annotations

from pyspark.daemon import manager

import mirrorspark.pipeline.mirror_source  # noqa: F401  (loaded for the workers to inherit)

if __name__ == "__main__":
    manager()
