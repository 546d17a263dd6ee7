"""A certificate of this machine that vouches for itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Address
from pathlib import Path

from lading.clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """PEM files."""

    certificate: Path
    key: Path
    both: Path
    """Key and certificate in one file, as Kafka wants them."""


def self_signed(folder: Path) -> Certificate:
    """For 127.0.0.1 and localhost, for a month."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), SystemClock().now()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=30))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = Certificate(certificate=folder / "certificate.pem", key=folder / "key.pem", both=folder / "keystore.pem")
    public = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    made.certificate.write_bytes(public)
    made.key.write_bytes(private)
    made.both.write_bytes(private + public)
    return made
