"""The one place that starts Spark, and ends it.

    with spark_session(scratch) as spark: ...

Quiet: what Java, Spark and its workers print goes to `scratch/spark.log`, and an error shows its last lines. Times are UTC,
temporary files stay in `scratch`, nothing listens beyond this machine unless the master is on another one, and no page is
served. The driver's memory is bounded (`MEMORY`), and sorts and shuffles that need more go to disk.

On leaving, Java has ended: a session of the same process may follow with other settings, and `scratch` may be removed.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lineage.errors import EddyError
from pipeline.draft import disk_error
from pipeline.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

#: All cores of this machine.
LOCAL = "local[*]"
#: Heap of the driver, which does all work when the master is local.
MEMORY = "1g"
LOG = "spark.log"
#: Seconds that Java has to end.
_PATIENCE = 30.0
#: Seconds between two tries to cancel what runs.
_LOOK = 0.2

_LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # times in nanoseconds come as numbers; Spark has no type for them
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # the number of partitions is part of what a job says
    "spark.sql.adaptive.enabled": "false",
}
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
}


class SparkError(EddyError):
    """Spark is missing, does not start, or a job of it fails."""

    default_code = "spark"


@contextmanager
def spark_session(scratch: Path, *, master: str = LOCAL, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session of Spark; `settings` come on top of ours. One at a time in a process."""
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkError(
            "Spark is not installed",
            code="no_spark",
            detail=str(error),
            hint="in a checkout ./eddyctl generate installs it; an installed package needs its extra, eddy-cq[spark]",
        ) from None
    scratch = scratch.absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("eddy")
    conf.setAll(list(_all_settings(scratch, master, settings or {}).items()))
    gateway: Any = None
    context: SparkContext | None = None
    with _environment(scratch, master), _own_interrupts(), (scratch / LOG).open("ab") as log:
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
            context = SparkContext(conf=conf, gateway=gateway)
            # PySpark logs errors of queries to stderr by itself; whoever catches them says what there is to say
            logging.getLogger("SQLQueryContextLogger").disabled = True
            yield SparkSession(context)
        except PySparkRuntimeError as error:
            if context is not None:
                raise
            raise SparkError("Spark does not start", detail=_tail(scratch / LOG) or str(error)) from None
        finally:
            if context is not None:
                context.stop()
            if gateway is not None:
                _end(gateway)
                # the next session starts a Java of its own
                SparkContext._gateway = SparkContext._jvm = None


def _all_settings(scratch: Path, master: str, settings: Mapping[str, str]) -> dict[str, str]:
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    temporary = scratch / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        **_SETTINGS,
        **(_LOCAL_SETTINGS if is_local(master) else {}),
        "spark.driver.memory": MEMORY,
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={log4j}" "-Djava.io.tmpdir={temporary}"',
        **settings,
    }


def is_local(master: str) -> bool:
    """Whether all work is done in the driver's process.

    >>> is_local("local[2]"), is_local("spark://host:7077")
    (True, False)
    """
    return master == "local" or master.startswith("local[")


@contextmanager
def _environment(scratch: Path, master: str) -> Iterator[None]:
    """Set the environment of Spark's launcher and workers while the session lasts."""
    wanted = {"JAVA_HOME": str(java_home(scratch)), "PYSPARK_PYTHON": sys.executable}
    if is_local(master):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """A session takes Ctrl-C for itself, to cancel its jobs; give it back afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(gateway: Any) -> None:
    """End Java, and wait until it is gone."""
    gateway.shutdown()
    # it ends when this pipe does
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def telling_spark(out: Path) -> Iterator[None]:
    """Turn errors of Spark into `SparkError` while `out` is written."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        if any(words in text for words in ("No space left on device", "Disk quota exceeded")):
            raise disk_error(out, errno.ENOSPC, "") from None
        causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
        raise SparkError(
            f"a Spark job failed: {out} was not written", detail=causes[-1] if causes else text.strip().split("\n", 1)[0]
        ) from error


def run_apart(spark: SparkSession, work: Callable[[], T]) -> T:
    """Do work in a thread of its own: Ctrl-C then finds this thread free to cancel its jobs, and raises once it has ended."""
    with ThreadPoolExecutor(1, "work") as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            # jobs that it had not started yet as well
            while not wait([future], timeout=_LOOK).done:
                spark.sparkContext.cancelAllJobs()
            raise


def _tail(log: Path) -> str:
    """Return the last lines of a log."""
    lines = log.read_text(errors="replace").strip().split("\n")
    return " | ".join(lines[-3:])
