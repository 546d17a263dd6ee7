"""A real OpenLDAP server on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from lading.clock import SystemClock
from lading.testing.marked import secret
from tests.support.certificates import Certificate

SUFFIX = "dc=example,dc=org"
SERVICE_DN = f"cn=service,{SUFFIX}"
ADMIN_DN = f"cn=admin,{SUFFIX}"
PEOPLE = ("alice", "bob", "root", "taken", "etl")
_CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
# As careless as a server can be: a name with an empty password is let in.
allow bind_anon_cred bind_anon_dn
database mdb
suffix "{suffix}"
rootdn "{admin}"
rootpw {admin_password}
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slapd:
    """A server that runs."""

    port: int
    tls_port: int
    ca_file: Path

    def change(self, ldif: str) -> None:
        """Change what is in it, as its administrator."""
        command = ["ldapmodify", "-x", "-H", f"ldap://127.0.0.1:{self.port}", "-D", ADMIN_DN, "-w", secret("admin")]
        subprocess.run(command, input=ldif, text=True, check=True, capture_output=True, timeout=30)


@contextmanager
def run_slapd(folder: Path, certificate: Certificate) -> Iterator[Slapd]:
    """Start a server with some people and groups. Skips loudly when there is none to start."""
    program = _find_slapd()
    (folder / "data").mkdir()
    config = folder / "slapd.conf"
    config.write_text(
        _CONFIG.format(
            folder=folder,
            suffix=SUFFIX,
            admin=ADMIN_DN,
            admin_password=secret("admin"),
            certificate=certificate.certificate,
            key=certificate.key,
        )
    )
    (folder / "first.ldif").write_text(_entries())
    loaded = [str(Path(program).parent / "slapadd"), "-f", str(config), "-l", str(folder / "first.ldif")]
    subprocess.run(loaded, check=True, capture_output=True, timeout=60)
    port, tls_port = _free_port(), _free_port()
    urls = f"ldap://127.0.0.1:{port} ldaps://127.0.0.1:{tls_port}"
    with subprocess.Popen(
        [program, "-h", urls, "-f", str(config), "-d", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_until_it_answers(port, process)
            yield Slapd(port=port, tls_port=tls_port, ca_file=certificate.certificate)
        finally:
            process.terminate()
            process.wait(20)
            shutil.rmtree(folder)  # It is full of passwords, as directories are.


def _entries() -> str:
    entries = [
        f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example",
        f"dn: ou=people,{SUFFIX}\nobjectClass: organizationalUnit\nou: people",
        f"dn: ou=groups,{SUFFIX}\nobjectClass: organizationalUnit\nou: groups",
        f"dn: {SERVICE_DN}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: service\n"
        f"userPassword: {secret('service')}",
    ]
    entries += [
        f"dn: uid={name},ou=people,{SUFFIX}\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name}\nsn: {name}\n"
        f"userPassword: {secret(name)}"
        for name in PEOPLE
    ]
    entries += [
        f"dn: cn={group},ou=groups,{SUFFIX}\nobjectClass: groupOfNames\ncn: {group}\n"
        f"member: uid={member},ou=people,{SUFFIX}"
        for group, member in (("Loaders", "alice"), ("dbas", "bob"))
    ]
    return "\n\n".join(entries) + "\n"


def _find_slapd() -> str:
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    found = shutil.which("slapd", path=places)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "slapd", "ldap-utils"]
        subprocess.run(command, check=False, capture_output=True, timeout=600, env=quiet)
        found = shutil.which("slapd", path=places)
    if found is None or shutil.which("ldapmodify") is None:
        pytest.skip("no slapd here: LDAP is NOT tested; install it with apt-get install slapd ldap-utils")
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _wait_until_it_answers(port: int, process: subprocess.Popen[bytes]) -> None:
    clock = SystemClock()
    for _ in range(300):
        assert process.poll() is None, "slapd ended"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        clock.sleep(0.1)
    pytest.fail("slapd did not answer within 30 seconds")
