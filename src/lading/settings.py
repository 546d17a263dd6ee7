"""Everything that can be set, in one record; `docs/settings.md` is made from it. Only this file reads the environment.

A field of a group below is the variable LADING_ and its name in capitals, unless it is an option of the command line
only. A home reads its settings once, when it is opened: a variable that is changed later changes nothing.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any

from lading.errors import ConfigError
from lading.setting_fields import ABOUT, About
from lading.setting_fields import option as _option
from lading.setting_fields import setting as _setting
from lading.settings_around import LineageVariables, NotifyVariables

PREFIX = "LADING_"
_MONTH_MINUTES = 60 * 24 * 31
_LEFT = "Nothing was started."
_MOST_BYTES = 65_536
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
    failpoints: str = _setting("", "For tests: places where the process kills itself, `name=kill[:hit]`.")
    host: str = _option("127.0.0.1", "--host", "Where to listen.")
    mysql_port: int = _option(9030, "--mysql-port", "For MySQL clients; 0: any that is free.")
    http_port: int = _option(8030, "--http-port", "For the console and the API; 0: any that is free.")
    allow_host: tuple[str, ...] = _option(
        (), "--allow-host", "Another name by which the console and the API are called; repeatable."
    )
    trust_proxy: tuple[str, ...] = _option(
        (), "--trust-proxy", "Address of a proxy whose X-Forwarded-For is believed; repeatable."
    )
    metrics: bool = _option(False, "--metrics", "Serve /metrics without a password, for Prometheus.")
    tls_cert: Path | None = _option(None, "--tls-cert", "Certificate, PEM.")
    tls_key: Path | None = _option(None, "--tls-key", "Its key, PEM.")
    require_tls: bool = _option(False, "--require-tls", "Refuse MySQL clients of this machine without TLS, too.")
    insecure: bool = _option(False, "--insecure", "Listen beyond this machine without TLS.")
    log_format: str = _option("text", "--log-format", "How logs look: text or json.")
    grace: float = _option(60.0, "--grace", "Seconds that running batches get at the end.")
    supervise: bool = _option(
        True,
        "--supervise",
        "Start the service again when a library aborts its process, from a small parent process.",
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
class LdapVariables:
    """Sign-in with LDAP: see [sign-in.md](sign-in.md)"""

    ldap_url: str = _setting("", "`ldaps://ldap.example`, or `ldap://ldap.example` with StartTLS.", shown="no LDAP")
    ldap_start_tls: bool = _setting(True, "`no`: do not encrypt; accepted for a directory on this machine only.")
    ldap_ca_file: Path | None = _setting(
        None, "Certificates that vouch for the directory, PEM.", shown="those of the system"
    )
    ldap_bind_dn: str = _setting("", "What a user is called there: `uid={user},ou=people,dc=example,dc=org`.")
    ldap_search_base: str = _setting("", "Where users are searched for, when there is no LADING_LDAP_BIND_DN.")
    ldap_search_filter: str = _setting("(uid={user})", "How they are searched for.")
    ldap_service_dn: str = _setting("", "The account that searches.")
    ldap_service_password: str = _setting("", "Its password.", is_secret=True)
    ldap_service_password_file: Path | None = _setting(None, "A file with its password.")
    ldap_group_base: str = _setting("", "Where groups are searched for.", shown="groups are not looked at")
    ldap_group_filter: str = _setting("(member={dn})", "How, with `{dn}` or `{user}`.")
    ldap_group_attribute: str = _setting("cn", "What the name of a group is.")
    ldap_roles: str = _setting("", "`group=role, group=role`: members of the group have the role.")
    ldap_timeout_s: int = _setting(5, "How long the directory may take, in seconds.", least=1, most=60)
    ldap_session_minutes: int = _setting(
        60, "How long a login lasts without a service account.", least=1, most=_MONTH_MINUTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcVariables:
    """Sign-in with OpenID Connect: see [sign-in.md](sign-in.md)"""

    oidc_issuer: str = _setting("", "The provider, exactly as it calls itself.", shown="no provider")
    oidc_client_id: str = _setting("", "How Lading is registered there.")
    oidc_client_secret: str = _setting("", "Its secret; none: a public client.", is_secret=True)
    oidc_client_secret_file: Path | None = _setting(None, "A file with its secret.")
    oidc_base_url: str = _setting("", "How browsers call the service: `https://lading.example`.")
    oidc_name: str = _setting("single sign-on", "What the button says after *Sign in with*.")
    oidc_scopes: str = _setting("profile", "What is asked for beside `openid`.")
    oidc_user_claim: str = _setting("preferred_username", "The claim that is the user's name here.")
    oidc_user_prefix: str = _setting("", "What is put before that name.")
    oidc_groups_claim: str = _setting("groups", "The claim that lists the groups.")
    oidc_roles: str = _setting("", "Roles for groups of the provider: `analysts=reader, /data/admins=operator`.")
    oidc_audiences: str = _setting(
        "", "For whom access tokens of the API must be made.", shown="none: no such token is accepted"
    )
    oidc_session_minutes: int = _setting(720, "How long a login to the console lasts.", least=1, most=_MONTH_MINUTES)
    oidc_create_users: bool = _setting(
        False, "`yes`: who signs in for the first time becomes a user, without any privilege."
    )
    oidc_ca_file: Path | None = _setting(
        None, "Certificates that vouch for the provider, PEM.", shown="those of the system"
    )


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
    return {each.name: type(each.default) for each in fields(Settings)}


def about(each: Field[Any]) -> About:
    """What is said of a setting."""
    found: About = each.metadata[ABOUT]
    return found


def variable_of(each: Field[Any]) -> str:
    """The variable of a setting; empty for an option of the command line only."""
    return PREFIX + each.name.upper() if about(each).has_variable else ""


def load_settings(variables: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. An empty variable is one that is not set.

    Raises ConfigError for a variable that is not known, and for a value that cannot be used.
    """
    given = {
        name: text.strip()
        for name, text in (environment() if variables is None else variables).items()
        if name.startswith(PREFIX) and text.strip()
    }
    known = {variable_of(each) for group in groups().values() for each in fields(group)} - {""}
    for name in sorted(given.keys() - known):
        _refuse_unknown(name, given[name], known)
    return Settings(**{name: _read_group(group, given) for name, group in groups().items()})


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


def read_secret_file(variable: str, path: Path) -> str:
    """The secret in the file that a variable names. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The file of {variable} cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name a text file that the service may read.") from error


def _refuse_unknown(name: str, text: str, known: set[str]) -> None:
    if name.startswith(_OF_TESTS) or (_OF_KUBERNETES.fullmatch(name) and not _could_be_meant(name, text)):
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    msg = f"There is no setting {name}" + (f"; did you mean {near[0]}?" if near else "")
    raise ConfigError(msg, left=_LEFT, todo="Correct the name or unset the variable; docs/settings.md lists them all.")


def _could_be_meant(name: str, text: str) -> bool:
    """`LADING_HTTP_PORT=8030` is a person's, `LADING_HTTP_PORT=tcp://10.0.0.7:8030` is Kubernetes's."""
    return bool(re.fullmatch(r"LADING(_(HTTP|MYSQL))?_PORT", name)) and "://" not in text


def _read_group(group: type[Any], given: Mapping[str, str]) -> Any:
    changed = {
        each.name: _READERS[str(each.type)](variable, given[variable], about(each))
        for each in fields(group)
        if (variable := variable_of(each)) in given
    }
    return group(**changed)


def _whole_number(variable: str, text: str, about: About) -> int:
    if text.isdecimal() and text.isascii() and about.least <= int(text) <= about.most:
        return int(text)
    msg = f"The variable {variable} is not a whole number from {about.least} to {about.most}"
    raise ConfigError(msg, left=_LEFT, todo=f"Set {variable} to such a number, or unset it.")


def _yes_or_no(variable: str, text: str, about: About) -> bool:
    match text.lower():
        case "1" | "yes" | "true" | "on":
            return True
        case "0" | "no" | "false" | "off":
            return False
    msg = f"The variable {variable} is neither yes nor no"
    raise ConfigError(msg, left=_LEFT, todo=f"Set {variable} to yes or no, or unset it.")


def _lines_of(variable: str, path: str, about: About) -> frozenset[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        msg = f"The file that {variable} names cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name a text file with one password on each line.") from error
    return frozenset(line.casefold() for line in text.splitlines() if line)


_READERS: dict[str, Callable[[str, str, About], Any]] = {
    "str": lambda _variable, text, _about: text,
    "int": _whole_number,
    "bool": _yes_or_no,
    "Path": lambda _variable, text, _about: Path(text),
    "Path | None": lambda _variable, text, _about: Path(text),
    "frozenset[str]": _lines_of,
}
