"""A Spark session of the tests' own: two threads, loopback, no page, few words."""

import os
import shutil
import subprocess
from contextlib import contextmanager

CALM = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    # A short life: compile quickly rather than well.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def reason_for_none():
    """Why there can be no session here; empty where there can be one."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return "no Spark here: Java is not installed"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = said.partition('"')[2].partition(".")[0].partition('"')[0]
    if not version.isdecimal() or int(version) < 17:
        return f"no Spark here: it needs Java 17, not {version or 'this one'}"
    return ""


@contextmanager
def running():
    """A session that ends with the tests."""
    from pyspark.sql import SparkSession

    before = os.environ.get("SPARK_LOCAL_IP")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").appName("labelfree tests")
    session = builder.config(map=CALM).getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        gateway = session.sparkContext._gateway
        if gateway is not None:  # the Java beneath it, which would end with this process only
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=30)
        if before is None:
            del os.environ["SPARK_LOCAL_IP"]
        else:
            os.environ["SPARK_LOCAL_IP"] = before
