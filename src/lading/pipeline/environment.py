"""What Spark's processes see of the service's environment: names from a list, and nothing that could be a secret.

Java and the Python workers run what statements ask for, and what runs in them can read their environment. So keys,
tokens and passwords stay in the service. What a task needs of them is sealed for its own job; see `sealing`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MORE_VARIABLE = "LADING_SPARK_ENVIRONMENT"
"""Names of more variables that Spark's processes are given, with spaces or commas between them."""
_NAMES = frozenset(
    (
        # The machine and the person.
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD",
        # Java and Hadoop.
        "JAVA_HOME", "JAVA_TOOL_OPTIONS", "HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "HIVE_CONF_DIR",
        "KRB5_CONFIG", "KRB5CCNAME", "KRB5_TRACE",
        # Python and its libraries.
        "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV",
        "CONDA_PREFIX", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL",
        "MALLOC_ARENA_MAX", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    )
)  # fmt: skip
_BEGINNINGS = ("LC_", "SPARK_", "PYSPARK_")
_SECRET = re.compile(r"SECRET|PASSW|TOKEN|CREDENTIAL|KEY|AUTH", re.IGNORECASE)
_NEVER = ("LADING_", "AWS_", "_SPARK_AUTH")
_WAY = re.compile(
    r"(?:https?|all|no)_proxy|AWS_(?:DEFAULT_)?REGION|AWS_CA_BUNDLE|AWS_ENDPOINT_URL\w*|AWS_USE_\w+|AWS_RETRY_MODE"
    r"|AWS_MAX_ATTEMPTS|AWS_STS_REGIONAL_ENDPOINTS|AWS_EC2_METADATA_DISABLED",
    re.IGNORECASE,
)
_IDENTITY = re.compile(r"AWS_.*|(?:https?|all|no)_proxy", re.IGNORECASE)


def is_for_spark(name: str, environment: Mapping[str, str]) -> bool:
    """Whether Spark's processes are given a variable."""
    if name.upper().startswith(_NEVER):
        return False
    if name in _NAMES or name in _more(environment):
        return True
    return name.startswith(_BEGINNINGS) and not _SECRET.search(name)


def spark_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of Java and of the processes that it starts."""
    return {name: value for name, value in environment.items() if is_for_spark(name, environment)}


def cloud_identity(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables by which the libraries of a task prove to a cloud who they are: lent to tasks, sealed."""
    return {name: value for name, value in environment.items() if _IDENTITY.fullmatch(name)}


def without_identity(lent: Mapping[str, str]) -> dict[str, str]:
    """What of it a task with keys of its own needs: the way to the network, the region, and nobody's identity."""
    return {name: value for name, value in lent.items() if _WAY.fullmatch(name)}


def _more(environment: Mapping[str, str]) -> list[str]:
    return environment.get(MORE_VARIABLE, "").replace(",", " ").split()
