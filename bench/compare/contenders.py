"""Who is compared, and what each of them is called in the tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.compare.environments import Environment

OWN = Environment(name="own")
OTHER_SPARK = "4.2.0"
"""The newest Spark for which Maven has a Delta of the JVM."""
SPARK = Environment(
    name="spark",
    packages=(f"pyspark=={OTHER_SPARK}",),
    jars=("io.delta:delta-spark_4.2_2.13:4.4.0",),
)
KAFKA_SPARK = "4.0.0"
"""The newest Spark that Maven has all parts of its Kafka source for."""
SPARK_KAFKA = Environment(
    name="spark-kafka",
    packages=(f"pyspark=={KAFKA_SPARK}",),
    jars=(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{KAFKA_SPARK}",),
)
DLT = Environment(name="dlt", packages=("dlt[deltalake,filesystem]==1.31.0", "duckdb", "pyarrow", "deltalake"))
BYTEWAX = Environment(name="bytewax", packages=("bytewax==0.21.1", "pyarrow"))
DUCKDB = Environment(name="duckdb", packages=("duckdb", "pyarrow"))
POLARS = Environment(name="polars", packages=("polars", "pyarrow"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """A module of `bench.peers` in an environment."""

    name: str
    title: str
    module: str
    environment: Environment = OWN
    variables: dict[str, str] = field(default_factory=dict)


BASE = "streaming"
"""Ratios are to it."""
CONTENDERS = (
    Contender(name="lading", title="Lading, vector path", module="lading_load"),
    Contender(
        name="lading-general",
        title="Lading, general path",
        module="lading_load",
        variables={"LADING_VECTOR_PATH": "no"},
    ),
    Contender(name=BASE, title="Structured Streaming → Parquet", module="streaming_load"),
    Contender(
        name="streaming-delta",
        title=f"Structured Streaming → Delta (Spark {OTHER_SPARK})",
        module="streaming_delta_load",
        environment=SPARK,
        variables={"LADING_BENCH_DELTA": "yes"},
    ),
    Contender(
        name="dlt",
        title="dlt → Delta",
        module="dlt_load",
        environment=DLT,
        variables={"RUNTIME__DLTHUB_TELEMETRY": "false"},
    ),
    Contender(name="bytewax", title="Bytewax → Parquet", module="bytewax_load", environment=BYTEWAX),
    Contender(name="duckdb", title="DuckDB → Parquet (limit)", module="duckdb_load", environment=DUCKDB),
    Contender(name="polars", title="Polars → Parquet (limit)", module="polars_load", environment=POLARS),
)
