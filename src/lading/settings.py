"""Everything that can be set, in one record; `docs/settings.md` is made from it. Only this file reads the environment.

A field of a group below is the variable LADING_ and its name in capitals, and a key of the table of its group in
`lading.toml`. A home reads its settings once, when it is opened: what is changed later changes nothing.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from lading.errors import ConfigError
from lading.setting_fields import ABOUT, About
from lading.setting_fields import setting as _setting
from lading.settings_around import LineageVariables, NotifyVariables
from lading.settings_file import READERS, Given, SettingsFile, read_settings_file
from lading.settings_sign_in import LdapVariables, OidcVariables

PREFIX = "LADING_"
FILE_NAME = "lading.toml"
_CONFIG = "LADING_CONFIG"
_LEFT = "Nothing was started."
_OF_TESTS = ("LADING_TEST_", "LADING_BENCH_")
_OF_KUBERNETES = re.compile(r"LADING(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
"""What Kubernetes gives every container when a Service is called lading or lading-something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The service"""

    home: Path = _setting(Path("lading-home"), "The home folder.", option="--home")
    store: str = _setting(
        "",
        "Where metadata is kept: postgresql://… shares it; SQLite in the home when left out.",
        option="--store",
        is_secret=True,
        shown="SQLite in the home",
    )
    secret_key: str = _setting(
        "",
        "The key that seals secrets, 32 bytes in urlsafe base64; several with commas: the first seals, all open.",
        is_secret=True,
        shown="`secret.key` in the home",
    )
    root_password_file: Path | None = _setting(
        None,
        "Where root's first password is read from; made and kept in the home when left out.",
        option="--root-password-file",
    )
    allow_private_endpoints: str = _setting(
        "",
        "Private addresses that jobs of everybody may read from: true, false or networks with commas.",
        option="--allow-private-endpoints",
        shown="false",
    )
    query_limits: str = _setting(
        "",
        "NAME=VALUE: timeout, rows, bytes, memory, at_once, per_user, waiting; repeatable.",
        option="--query-limit",
        shown="see [service.md](service.md)",
    )
    state_copies: str = _setting(
        "", "A folder on every machine of Spark for copies of state files of tables in S3; none when left out."
    )
    state_copies_mb: int = _setting(
        10_240, "How large the copies of one machine may be together; those used longest ago are removed.", least=1
    )
    listener_commands: str = _setting(
        "",
        "Programs that jobs may run when a partition is done: `name=/path,name=/path`; none when left out.",
    )
    lease_seconds: int = _setting(
        8,
        "A service that shows no sign of life for so long loses its jobs to others that share its store; 1 or more.",
    )
    spark_settings: Path | None = _setting(
        None,
        "A file with settings of Spark, a name and a value in each line as in spark-defaults.conf; see "
        "[cluster.md](cluster.md).",
        option="--spark-settings",
    )
    spark_environment: str = _setting("", "Names of more variables that Spark's processes are given.")
    vector_path: bool = _setting(
        True, "`no`: rows are always mapped by Spark SQL, never in Arrow alone; see [vector.md](vector.md)."
    )
    failpoints: str = _setting(
        "", "For tests: places where the process kills itself, `name=kill[:hit]`.", in_file=False
    )
    spark_conf: tuple[str, ...] = _setting(
        (),
        "spark.NAME=VALUE, over all other settings of Spark; repeatable. In the file: the table [spark].",
        option="--spark-conf",
        in_file=False,
        is_spaced=True,
    )
    config: Path | None = _setting(
        None,
        "The file with settings.",
        option="--config",
        shown="`lading.toml` in the home, when it is there",
        in_file=False,
    )
    init: bool = _setting(
        False,
        "Make the home when it is not there; without this a service refuses a home that is not there.",
        option="--init",
    )
    host: str = _setting("127.0.0.1", "Where to listen.", option="--host")
    mysql_port: int = _setting(9030, "For MySQL clients; 0: any that is free.", option="--mysql-port", most=65_535)
    http_port: int = _setting(
        8030, "For the console and the API; 0: any that is free.", option="--http-port", most=65_535
    )
    allow_host: tuple[str, ...] = _setting(
        (), "Another name by which the console and the API are called; repeatable.", option="--allow-host"
    )
    trust_proxy: tuple[str, ...] = _setting(
        (), "Address of a proxy whose X-Forwarded-For is believed; repeatable.", option="--trust-proxy"
    )
    metrics: bool = _setting(False, "Serve /metrics without a password, for Prometheus.", option="--metrics")
    tls_cert: Path | None = _setting(None, "Certificate, PEM.", option="--tls-cert")
    tls_key: Path | None = _setting(None, "Its key, PEM.", option="--tls-key")
    require_tls: bool = _setting(
        False, "Refuse MySQL clients of this machine without TLS, too.", option="--require-tls"
    )
    insecure: bool = _setting(False, "Listen beyond this machine without TLS.", option="--insecure")
    log_format: str = _setting("text", "How logs look: text or json.", option="--log-format", choices=("text", "json"))
    grace: float = _setting(60.0, "Seconds that running batches get at the end.", option="--grace")
    supervise: bool = _setting(
        True,
        "Start the service again when a library aborts its process, from a small parent process.",
        option="--supervise",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """Accounts: see [users.md](users.md)"""

    token_days: int = _setting(90, "How long a token is valid when CREATE TOKEN does not say; 0: for ever.")
    password_min_length: int = _setting(8, "How many characters a new password has at least.")
    password_classes: int = _setting(1, "Of how many kinds they are at least: small letters, capitals, digits, others.")
    password_list: frozenset[str] = _setting(
        frozenset(),
        "A text file with more passwords that are refused, one on each line.",
        is_secret=True,
        shown="none",
    )
    lockout_failures: int = _setting(
        20, "Wrong passwords of one name from one address after which it is locked there; 0: never."
    )
    lockout_minutes: int = _setting(15, "How long such a lock lasts.")
    name_failures: int = _setting(
        200,
        "Wrong passwords of one name within a day, from anywhere, after which it is locked where it never logged in "
        "from; 0: never.",
    )
    address_failures: int = _setting(
        20, "Wrong passwords of one address after which all names are slowed down for it; 0: never."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The audit log: see [audit.md](audit.md)"""

    audit_file_mb: int = _setting(32, "A file that would become larger is rotated.", least=1)
    audit_files: int = _setting(10, "So many files are kept, the one that is written included.", least=1)
    audit_characters: int = _setting(2000, "A longer statement is cut.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """Loads of files: see [files.md](files.md)"""

    file_settle_seconds: int = _setting(
        5, "For how long a file on a disk must not have been modified before it is loaded; 0: not at all."
    )
    evolution_max_columns: int = _setting(
        1000, "A table that gets the columns its source has (`schema.evolution`) has so many at most.", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """Compaction: see [compaction.md](compaction.md)"""

    compaction_seconds: int = _setting(300, "How often a service looks for small files of its tables; 0: never.")
    compaction_small_mb: int = _setting(32, "A data file below this is small.", least=1)
    compaction_target_mb: int = _setting(128, "How large files become.", least=1)
    compaction_min_files: int = _setting(10, "Fewer small files in a row are left alone.", least=2)
    compaction_min_age_seconds: int = _setting(600, "Younger files are left alone.")
    compaction_budget_mb: int = _setting(512, "So much is read in one round, of all tables together.", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, in groups."""

    service: ServiceSettings = ServiceSettings()
    security: SecuritySettings = SecuritySettings()
    audit: AuditSettings = AuditSettings()
    files: FileSettings = FileSettings()
    compaction: CompactionSettings = CompactionSettings()
    ldap: LdapVariables = LdapVariables()
    oidc: OidcVariables = OidcVariables()
    notify: NotifyVariables = NotifyVariables()
    lineage: LineageVariables = LineageVariables()
    file: SettingsFile = field(default_factory=SettingsFile)
    """What the file has beside these: settings of Spark and catalogs."""


def environment() -> Mapping[str, str]:
    """The process's environment, for what is not a setting of Lading: Java, AWS, references of statements."""
    return os.environ


@contextmanager
def lent_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Within this, libraries find these variables in the environment of the process."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def set_variables(variables: Mapping[str, str]) -> None:
    """Tell libraries of this process, which look into its environment."""
    os.environ.update(variables)


def groups() -> dict[str, type[Any]]:
    """The groups by their names in `Settings`."""
    return {each.name: type(each.default) for each in fields(Settings) if each.default is not MISSING}


def about(each: Field[Any]) -> About:
    """What is said of a setting."""
    found: About = each.metadata[ABOUT]
    return found


def variable_of(each: Field[Any]) -> str:
    """The variable of a setting."""
    return PREFIX + each.name.upper()


def load_settings(variables: Mapping[str, str] | None = None, *, home: Path | None = None) -> Settings:
    """The settings of this process: of the environment, over those of the file, over the defaults.

    The file is the one that LADING_CONFIG names, or else `lading.toml` in the home. An empty variable stands for the
    default, also over the file. Raises ConfigError for a name that is not known, and for a value that cannot be used.
    """
    whole = environment() if variables is None else variables
    given = {name: text.strip() for name, text in whole.items() if name.startswith(PREFIX)}
    known = {variable_of(each) for group in groups().values() for each in fields(group)}
    for name in sorted(given.keys() - known):
        _refuse_unknown(name, given[name], known)
    file = read_settings_file(_file_of(given, home), groups(), whole, is_in_home=not given.get(_CONFIG))
    return Settings(
        **{name: _read_group(group, given, file.given.get(name, {})) for name, group in groups().items()},
        file=file,
    )


def _file_of(given: Mapping[str, str], home: Path | None) -> Path | None:
    if named := given.get(_CONFIG, ""):
        return Path(named)
    there = None if home is None else home / FILE_NAME
    return there if there is not None and there.exists() else None


def spark_settings_of(settings: Settings) -> dict[str, str]:
    """Settings of Spark: the table [spark], then the file of LADING_SPARK_SETTINGS, then LADING_SPARK_CONF."""
    own = settings.service
    return {**settings.file.spark, **read_spark_settings(own.spark_settings), **parse_spark_conf(own.spark_conf)}


def parse_spark_conf(pairs: Sequence[str]) -> dict[str, str]:
    """`spark.NAME=VALUE`, each. Raises ConfigError."""
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip().startswith("spark."):
            msg = f"--spark-conf has something that is no setting of Spark: it begins with {name[:60]!r}"
            raise ConfigError(msg, left=_LEFT, todo="Write spark.NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def read_spark_settings(path: Path | None) -> dict[str, str]:
    """Settings of Spark from a file: `spark.master spark://host:7077`, or with `=`. Raises ConfigError."""
    if path is None:
        return {}
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        msg = f"The file with settings of Spark cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo=f"Correct {PREFIX}SPARK_SETTINGS, or unset it.") from error
    found = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        name, value = [*re.split(r"[\s=:]+", line, maxsplit=1), ""][:2]
        if not name.startswith("spark.") or not value:
            msg = f"{path} has a line that is no setting of Spark: it begins with {name[:60]!r}"
            raise ConfigError(msg, left=_LEFT, todo="Write `spark.NAME VALUE` in each line.")
        found[name] = value.strip()
    return found


def _refuse_unknown(name: str, text: str, known: set[str]) -> None:
    is_kubernetes = _OF_KUBERNETES.fullmatch(name) and (name != f"{PREFIX}PORT" or "://" in text)
    if not text or name.startswith(_OF_TESTS) or is_kubernetes:
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    msg = f"There is no setting {name}" + (f"; did you mean {near[0]}?" if near else "")
    raise ConfigError(msg, left=_LEFT, todo="Correct the name or unset the variable; docs/settings.md lists them all.")


def _is_set(variable: str, given: Mapping[str, str]) -> bool:
    """`LADING_HTTP_PORT=8030` is a person's, `LADING_HTTP_PORT=tcp://10.0.0.7:8030` is Kubernetes's."""
    return variable in given and not (_OF_KUBERNETES.fullmatch(variable) and "://" in given[variable])


def _read_group(group: type[Any], given: Mapping[str, str], in_file: Mapping[str, Given]) -> Any:
    changed = {}
    for each in fields(group):
        variable = variable_of(each)
        if _is_set(variable, given):
            if given[variable]:
                said = Given(text=given[variable], what=f"The variable {variable}", name=variable)
                changed[each.name] = READERS[str(each.type)](said, about(each))
        elif each.name in in_file:
            changed[each.name] = READERS[str(each.type)](in_file[each.name], about(each))
    return group(**changed)
