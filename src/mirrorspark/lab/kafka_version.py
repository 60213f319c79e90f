"""What differs from one Kafka version to the next, in one place: jars, log binding, who coordinates, class names.

The lab's brokers are of ``LATEST`` unless a test asks for an older one: ``ClusterOfBrokers("old", kafka=KAFKA_2_8)``.
Values only; jars are fetched by ``lab/jars.py``, processes started by ``lab/child.py`` and ``lab/broker.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["KAFKA_2_8", "KAFKA_3_9", "LATEST", "KafkaVersion", "LogBinding"]


@dataclass(frozen=True, slots=True)
class LogBinding:
    """The library behind slf4j, which Kafka's distribution carries and its Maven description does not ask for."""

    coordinates: str
    file_name: str
    text: str
    flag: str

    def configure(self, folder: Path) -> str:
        """Write the library's file into the folder; returns the flag that leads a JVM there."""
        file = folder / self.file_name
        file.write_text(self.text)
        return self.flag.format(file=file)


_LOG4J_2 = LogBinding(
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    "log4j2.properties",
    """\
status = error
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c{1})%n
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
""",
    "-Dlog4j2.configurationFile={file}",
)
# The heir of log4j 1, under the same class names: brokers before 4.0 call those themselves.
_RELOAD4J = LogBinding(
    "org.slf4j:slf4j-reload4j:1.7.36",
    "log4j.properties",
    """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c{1})%n
log4j.logger.org.apache.kafka.common.config=WARN
""",
    "-Dlog4j.configuration=file:{file}",
)


@dataclass(frozen=True, slots=True)
class KafkaVersion:
    """One release. ``series`` is how far the numbers of jars that somebody else brought must agree with it."""

    number: str
    series: str
    log_binding: LogBinding
    authorizer: str
    has_zookeeper: bool = False
    more_modules: tuple[str, ...] = ()

    @property
    def coordinates(self) -> tuple[str, ...]:
        modules = ("kafka_2.13", *self.more_modules)
        return (*(f"org.apache.kafka:{module}:{self.number}" for module in modules), self.log_binding.coordinates)

    @property
    def jars_needed(self) -> tuple[str, ...]:
        """How the names of the jars begin without which nothing works."""
        own = tuple(f"{module}-{self.series}" for module in ("kafka_2.13", "kafka-clients", *self.more_modules))
        return (*own, "scala-library-2.13", *(("zookeeper-",) if self.has_zookeeper else ()))

    @property
    def jars_variable(self) -> str:
        """Names a folder with this version's jars, for where no registry is in reach."""
        return "MIRRORSPARK_KAFKA_JARS" + ("" if self is LATEST else f"_{self.series.replace('.', '_')}")

    def __str__(self) -> str:
        return f"Kafka {self.number}"


LATEST = KafkaVersion(
    "4.3.1",
    "4",
    _LOG4J_2,
    authorizer="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    more_modules=("connect-mirror",),
)
KAFKA_3_9 = KafkaVersion(
    "3.9.1", "3.9", _RELOAD4J, authorizer="org.apache.kafka.metadata.authorizer.StandardAuthorizer"
)
"""The last series that also knows ZooKeeper; run with KRaft here, as clusters on their way to 4.x are."""
KAFKA_2_8 = KafkaVersion(
    "2.8.2", "2.8", _RELOAD4J, authorizer="kafka.security.authorizer.AclAuthorizer", has_zookeeper=True
)
"""The last series that still writes message formats v0 and v1."""
