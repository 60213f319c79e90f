"""CPU and memory of process trees, children that have ended included; killing whole trees."""

from __future__ import annotations

import subprocess
import sys

import psutil

from mirrorspark.lab.clients import wait_for
from mirrorspark.lab.process_tree import ProcessTree, descendants, kill_tree

# Uses half a second of CPU, then says so and waits to be ended.
BUSY = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\n"
WAIT = "import sys; sys.stdin.read()"


def _python(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_children_that_have_ended_are_counted() -> None:
    parent = _python(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\n{WAIT}")
    assert parent.stdout is not None
    with ProcessTree(parent.pid) as tree:
        assert parent.stdout.readline() == "done\n"
        wait_for(lambda: not descendants(parent.pid), "the child's end", 30)
        usage = tree.usage()
    assert usage.cpu_s >= 0.4
    assert usage.rss_bytes_peak >= usage.rss_bytes > 0
    assert usage.processes == 1
    parent.communicate()
    assert tree.usage().cpu_s >= 0.4, "what is known stays known after the tree's end"


def test_excluded_subtrees_are_left_out() -> None:
    child = _python(f"{BUSY}\n{WAIT}")
    assert child.stdout is not None
    with ProcessTree(exclude=[child.pid]) as tree:
        assert child.stdout.readline() == "done\n"
        child.communicate()
    assert tree.usage().cpu_s < 0.4


def test_whole_tree_is_killed() -> None:
    parent = _python(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {WAIT!r}])\nprint('up', flush=True)\n{WAIT}"
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    below = descendants(parent.pid)
    assert len(below) == 1
    kill_tree(parent.pid)
    parent.communicate()
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in below)
    kill_tree(parent.pid)
