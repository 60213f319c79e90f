"""Spark's processes are found by their roles, in a real local Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mirrorspark.java_home import java_home
from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.process_tree import kill_tree
from mirrorspark.lab.spark_processes import driver_jvms, source_runners, task_daemons, task_workers

DRIVER = """
import time
from pyspark import SparkConf, SparkContext
context = SparkContext(conf=SparkConf().setMaster("local[2]").set("spark.ui.enabled", "false"))
context.parallelize(range(2), 2).foreach(lambda _: time.sleep(600))
"""


def test_workers_daemon_and_jvm_are_told_apart(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path),
    }
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(task_workers(driver.pid)) == 2, "two tasks in Python workers", 120)
        assert len(driver_jvms(driver.pid)) == 1
        assert len(task_daemons(driver.pid)) == 1
        assert source_runners(driver.pid) == []
        roles = driver_jvms(driver.pid) + task_daemons(driver.pid) + task_workers(driver.pid)
        assert len(set(roles)) == 4
    finally:
        kill_tree(driver.pid)
        driver.wait()
