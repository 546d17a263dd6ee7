"""`lading serve`: the service, with all its faces."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lading.cli.homes import HOME, SPARK_CONF, STORE, require_home
from lading.cli.options import DEFAULTS, option
from lading.errors import ConfigError, NotFoundError
from lading.service.scheduling.supervisor import Life
from lading.service.scheduling.supervisor import supervise as supervise_process
from lading.service.telemetry.logs import LogFormat
from lading.settings import parse_spark_conf, read_spark_settings

if TYPE_CHECKING:
    from lading.http.middleware import DoorRules
    from lading.mysql.protocol.options import MysqlOptions
    from lading.service.facade import Lading
    from lading.service.lineage.config import LineageSettings
    from lading.service.notify.config import NotifySettings
    from lading.service.scheduling.scheduler import Scheduler
    from lading.service.security.certificates import CertificateFiles
    from lading.service.security.root_password import RootPassword
    from lading.service.security.users import Access
    from lading.service.telemetry.metrics import Metrics

LOCAL_TOKEN = "commands of this machine"  # noqa: S105 - the name of a token, not a token
"""Followed by the home: others that share the store have tokens of their own."""


def serve(
    home: HOME = DEFAULTS.home,
    host: Annotated[str, option("host")] = DEFAULTS.host,
    mysql_port: Annotated[int, option("mysql_port")] = DEFAULTS.mysql_port,
    http_port: Annotated[int, option("http_port")] = DEFAULTS.http_port,
    allow_host: Annotated[list[str] | None, option("allow_host")] = None,
    trust_proxy: Annotated[list[str] | None, option("trust_proxy")] = None,
    metrics: Annotated[bool, option("metrics")] = DEFAULTS.metrics,
    store: STORE = DEFAULTS.store,
    tls_cert: Annotated[Path | None, option("tls_cert")] = DEFAULTS.tls_cert,
    tls_key: Annotated[Path | None, option("tls_key")] = DEFAULTS.tls_key,
    require_tls: Annotated[bool, option("require_tls")] = DEFAULTS.require_tls,
    root_password_file: Annotated[Path | None, option("root_password_file")] = DEFAULTS.root_password_file,
    insecure: Annotated[bool, option("insecure")] = DEFAULTS.insecure,
    allow_private_endpoints: Annotated[str | None, option("allow_private_endpoints")] = None,
    spark_settings: Annotated[Path | None, option("spark_settings")] = None,
    spark_conf: SPARK_CONF = None,
    init: Annotated[bool, option("init")] = DEFAULTS.init,
    query_limit: Annotated[list[str] | None, option("query_limits")] = None,
    log_format: Annotated[LogFormat, option("log_format")] = LogFormat.TEXT,
    grace: Annotated[float, option("grace")] = DEFAULTS.grace,
    supervise: Annotated[bool, option("supervise")] = DEFAULTS.supervise,
) -> None:
    """Run the jobs and answer MySQL clients, HTTP and browsers, until SIGTERM."""
    from lading.pipeline.private_memory import hide_memory
    from lading.service.limits.rlimits import allow_many_open_files
    from lading.service.security.log_output import close_stdout, keep_crashes
    from lading.service.telemetry.log_watch import LogWatch
    from lading.service.telemetry.logs import set_up_logs

    hide_memory()
    if not init:
        todo = f"Add --init to have it made, or make it with: lading init --home {home}. Or correct the name."
        require_home(home, todo)
    life = _begin(log_format) if supervise else Life()
    set_up_logs(log_format, is_service=True)
    allow_many_open_files()
    log = logging.getLogger("lading.serve")
    if life.restarts:
        log.error("started again after %s, for the %d. time since the start", life.last_signal, life.restarts)
    ending = _Signals(life)
    if (tls_cert is None) != (tls_key is None):
        msg = "A certificate and its key go together"
        raise ConfigError(msg, left="Nothing was started.", todo="Give --tls-cert and --tls-key, or neither.")
    if require_tls and tls_cert is None:
        msg = "--require-tls needs a certificate"
        raise ConfigError(msg, left="Nothing was started.", todo="Give --tls-cert and --tls-key.")
    from lading.service.security.certificates import CertificateFiles

    tls = CertificateFiles(tls_cert, tls_key) if tls_cert is not None and tls_key is not None else None
    from lading.http.hosts import Hosts
    from lading.http.middleware import DoorRules
    from lading.http.proxies import check_proxies
    from lading.service.security.bind_policy import check_listening

    hosts, proxies = Hosts.configured(host, allow_host or ()), check_proxies(trust_proxy or ())
    check_listening(host, has_tls=tls is not None, insecure=insecure)
    with ExitStack() as stack:
        from lading.mysql.protocol.options import MysqlOptions
        from lading.service.facade import Lading
        from lading.service.oidc_open import open_oidc
        from lading.service.scheduling.cleaner import CleaningRounds
        from lading.service.scheduling.compactor import CompactionRounds
        from lading.service.scheduling.lag_poller import LagRounds
        from lading.service.scheduling.scheduler import Scheduler
        from lading.service.security.root_password import ensure_root_password
        from lading.service.spark_queries.limits import parse_limits
        from lading.service.telemetry.metrics import Metrics

        limits = parse_limits(query_limit or ())
        opened = Lading(
            home,
            store_url=store,
            spark={**read_spark_settings(spark_settings), **parse_spark_conf(spark_conf or ())},
            allow_private_endpoints=allow_private_endpoints,
            query_limits=limits,
        )
        lading = stack.enter_context(opened)
        others = _others(lading)
        keep_crashes(lading.home.path)
        access = lading.access
        root = ensure_root_password(access, home, root_password_file)
        told = Metrics(lading.store, lading.clock, audit=lading.audit, crashes=life.restarts)
        lading.watches.extend((told, LogWatch()))
        scheduler = Scheduler(lading)
        rules = DoorRules(
            access=access, open_metrics=metrics, hosts=hosts, oidc=open_oidc(lading.settings.oidc, lading)
        )
        http = _http(stack, lading, rules, scheduler, told, (host, http_port), tls, proxies)
        options = MysqlOptions(host=host, port=mysql_port, tls=tls, require_tls=require_tls)
        mysql = _mysql(stack, lading, access, options)
        scheduler.start()
        stack.callback(lambda: scheduler.close(grace))
        rounds = LagRounds(lading, told)
        rounds.start()
        stack.callback(rounds.close)
        cleaning = CleaningRounds(lading)
        cleaning.start()
        stack.callback(cleaning.close)
        compaction = CompactionRounds(lading, told)
        compaction.start()
        stack.callback(compaction.close)
        console = f"{'https' if tls else 'http'}://{_shown(host)}:{http}"
        _light(stack, lading, console, mysql)
        _tell(stack, lading, others, console)
        log.info("ready: mysql -h %s -P %d -u root -p; console %s", _shown(host), mysql, console)
        _show_password(root, log)
        typer.echo(f"Lading is ready: MySQL on {host}:{mysql}, HTTP on {host}:{http} (pid {os.getpid()})")
        close_stdout()
        threading.Thread(target=_get_ready, args=(lading, log), name="lading-ready", daemon=True).start()
        ending.wait()
        log.info("ending: running batches may finish; another signal ends at once")
    log.info("ended")


def _begin(log_format: LogFormat) -> Life:
    """From here on this is the child, each time that it is started. Nothing was opened yet."""
    from lading.service.telemetry.logs import set_up_logs

    set_up_logs(log_format)
    return supervise_process()


def _show_password(root: RootPassword, log: logging.Logger) -> None:
    """Say what root's password is, to a person; to a log, only where it is."""
    if root.is_ignored:
        log.warning("root has another password than --root-password-file says; change it with ALTER USER root")
    if root.first and sys.stdout.isatty():
        typer.echo(f"The password of root is {root.first}")
        typer.echo(f"It is not shown again; {root.file} keeps it until ALTER USER root sets another one.")
    elif root.file is not None:
        log.info("the password of root is in %s until ALTER USER root sets another one", root.file)


def _get_ready(lading: Lading, log: logging.Logger) -> None:
    """Start what batches need while nobody waits for it. What fails here fails again, and is told there."""
    try:
        lading.get_ready()
    except Exception as error:  # noqa: BLE001 - logged; every batch says it again in the record of its job
        log.warning("Spark could not be started: %s", error)


def _http(
    stack: ExitStack,
    lading: Lading,
    rules: DoorRules,
    scheduler: Scheduler,
    told: Metrics,
    place: tuple[str, int],
    tls: CertificateFiles | None,
    proxies: tuple[str, ...],
) -> int:
    from lading.console.mount import mount_console
    from lading.http.app import create_app
    from lading.http.server import HttpServer

    access = rules.access
    app = create_app(lading, access=access, scheduler=scheduler, metrics=told, rules=rules)
    is_https, oidc = tls is not None, rules.oidc
    mount_console(app, lading, access=access, metrics=told, scheduler=scheduler, is_https=is_https, oidc=oidc)
    server = HttpServer(app, trusted_proxies=proxies)
    server.start(place[0], place[1], tls=tls)
    stack.callback(server.close)
    return server.port


def _mysql(stack: ExitStack, lading: Lading, access: Access, options: MysqlOptions) -> int:
    from lading.mysql.server import MysqlServer
    from lading.service.security.mysql_users import MysqlUsers

    server = MysqlServer(lading, authenticator=MysqlUsers(access), options=options)
    server.start()
    stack.callback(server.close)
    return server.port


def _others(lading: Lading) -> tuple[NotifySettings | None, LineageSettings | None]:
    """Who else is to be told of what jobs do. Raises ConfigError, before anybody can connect."""
    from lading.service.lineage.config import load_lineage_settings
    from lading.service.notify.config import load_notify_settings

    return load_notify_settings(lading.settings.notify), load_lineage_settings(lading.settings.lineage)


def _tell(
    stack: ExitStack, lading: Lading, others: tuple[NotifySettings | None, LineageSettings | None], console: str
) -> None:
    from lading.service.lineage.rounds import LineageRounds
    from lading.service.notify.rounds import NotifyRounds

    people, lineage = others
    rounds: list[NotifyRounds | LineageRounds] = []
    if people is not None:
        rounds.append(NotifyRounds(lading, people, console_url=console))
    if lineage is not None:
        rounds.append(LineageRounds(lading, lineage))
    for each in rounds:
        each.start()
        stack.callback(each.close)


def _light(stack: ExitStack, lading: Lading, http: str, mysql_port: int) -> None:
    """Let other commands find the service. Tokens of services of this home that died are made invalid."""
    from lading.service.runtime.address_file import ServiceAddress, remove_address, write_address
    from lading.service.security.users import ROOT
    from lading.sql.statements.users import TokenLimits

    access, home = lading.access, lading.home.path
    name = f"{LOCAL_TOKEN}, home {lading.leases.home_id}"
    for old in access.list_tokens(by=ROOT):
        # Those of older versions did not say which home they are of.
        if old.user == ROOT.user and old.comment in (name, LOCAL_TOKEN):
            _drop_token(access, old.token_id)
    limits = TokenLimits(never_expires=True)
    token = access.create_token(ROOT.user, by=ROOT, comment=name, limits=limits)
    write_address(home, ServiceAddress(pid=os.getpid(), http=http, mysql_port=mysql_port, token=token.text))
    stack.callback(lambda: _drop_token(access, token.token_id))
    stack.callback(lambda: remove_address(home))


def _drop_token(access: Access, token_id: str) -> None:
    """It may be gone: an administrator may drop it, and another service that starts those of older versions."""
    from lading.service.security.users import ROOT

    with suppress(NotFoundError):
        access.drop_token(token_id, by=ROOT)


def _shown(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)  # noqa: S104 - shown, not bound


class _Signals:
    """The first signal asks for an orderly end, the second ends the process as it is: every step allows that."""

    def __init__(self, life: Life) -> None:
        self._asked = threading.Event()
        self._life = life
        signal.signal(signal.SIGTERM, self._take)
        signal.signal(signal.SIGINT, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._life.note_signal()
        if self._asked.is_set():
            os._exit(128 + number)
        self._asked.set()

    def wait(self) -> None:
        while not self._asked.wait(1.0):
            pass
