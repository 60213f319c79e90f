"""Spark's daemon that forks Python workers, with everything loaded before the first fork that a worker will need.

``spark.python.daemon.module`` names it. A worker then starts with everything imported, which saves it a second or two; and
it does not load pandas when it hands in its first receipts, which stopped its lane for another two.
"""

from __future__ import annotations

import pandas  # noqa: F401  (PySpark asks for both with the first Arrow batch)
import pyarrow.pandas_compat  # noqa: F401
from pyspark.daemon import manager

import mirrorspark.pipeline.mirror_source  # noqa: F401

if __name__ == "__main__":
    manager()
