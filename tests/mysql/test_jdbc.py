"""The drivers that tools in Java use: MySQL's own and MariaDB's, as they come from Maven."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lading.mysql.server import MysqlServer
from tests.support.maven import JarsMissingError, find_jars

pytestmark = pytest.mark.java

CLIENT = Path(__file__).parent / "jdbc" / "Client.java"
DRIVERS = ("com.mysql:mysql-connector-j:9.1.0", "org.mariadb.jdbc:mariadb-java-client:3.4.1")
MULTI = "allowMultiQueries=true"


@pytest.fixture(scope="module")
def jars() -> Path:
    if shutil.which("javac") is None:
        pytest.skip("NOT PROVED, no JDBC driver was tried: there is no JDK")
    try:
        return find_jars("jdbc-1", DRIVERS)
    except JarsMissingError as missing:
        pytest.skip(f"NOT PROVED, no JDBC driver was tried: {missing}")


def run(jars: Path, url: str) -> dict[str, str]:
    command = ["java", "-Xmx256m", "-cp", f"{jars}/*", str(CLIENT), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(" = ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://127.0.0.1:{{}}/sales?{MULTI}",
        f"mysql://127.0.0.1:{{}}/sales?{MULTI}&useServerPrepStmts=true&useCursorFetch=true&useInformationSchema=false",
        f"mariadb://127.0.0.1:{{}}/sales?{MULTI}",
        f"mariadb://127.0.0.1:{{}}/sales?{MULTI}&useServerPrepStmts=true",
    ],
)
def test_what_tools_in_java_ask_is_answered(server: MysqlServer, jars: Path, url: str) -> None:
    told = run(jars, f"jdbc:{url.format(server.port)}")
    assert told["tables"] == told["only tables"] == told["shown"] == "[clicks, orders]"
    assert told["one table"] == "[orders]"
    assert told["columns"] == told["streamed"] == "[id, city, amount, at, open]"
    assert told["nullable"] == "[NO, YES, YES, YES, YES]"
    assert told["types"].startswith("[BIGINT, VARCHAR, DECIMAL, ")
    assert {told[name] for name in ("keys", "indexes", "imported", "exported", "procedures")} == {"[]"}
    assert "sales" in told["catalogs"]
    assert told["catalog"] == "sales"
    assert told["constants"] == "2 ä💧 null 1.50"
    assert told["several"] == "3"
    assert told["prepared 1"] == "[id1, city2, amount3, at4, open5]"
    assert told["prepared 2"] == "[city2, amount3, at4, open5]"
    assert told["error SELCT 1"] == "1064 42000"
    assert told["error USE nowhere"] == "1049 42000"
    assert told["error SELECT * FROM sales.nothing"] == "1146 42S02"
    assert told["error DROP USER nobody"] == "1396 HY000"
    assert told["valid"] == told["still valid"] == "true"
