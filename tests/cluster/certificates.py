"""The control plane's own small certificate authority.

Every server on the loopback interface shows one certificate of it, and every client that is not a service account
(the administrator, the scheduler, …) proves who it is with another: in Kubernetes the certificate's common name is the
user, its organisations are the groups. All of it lives in a temporary folder for the life of one control plane.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
LIFETIME: Final = datetime.timedelta(days=90)  # no alert warns of its end
CLOCK_SKEW: Final = datetime.timedelta(hours=1)
SIGNS_CERTIFICATES: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """Issues certificates into one folder; `certificate` is the file that others trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kerf-test-ca")
        self.certificate: Final = folder / "ca.crt"
        builder = self._builder(self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(SIGNS_CERTIFICATES, critical=True)
        self.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, name: str, lifetime: datetime.timedelta = LIFETIME) -> KeyPair:
        """A certificate for any server on the loopback interface, also under the API server's names in a cluster."""
        alternatives: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        alternatives += [x509.DNSName(server) for server in SERVER_NAMES]
        extension = x509.SubjectAlternativeName(alternatives)
        return self._issue(name, _name(name), ExtendedKeyUsageOID.SERVER_AUTH, extension, lifetime)

    def client(self, user: str, *groups: str) -> KeyPair:
        """A certificate that makes its bearer this Kubernetes user, in these groups."""
        return self._issue(user.replace(":", "-"), _name(user, *groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        file: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
        lifetime: datetime.timedelta = LIFETIME,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key, lifetime).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pair = KeyPair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        pair.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        write_private_key(pair.key, key)
        return pair

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: datetime.timedelta = LIFETIME
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + lifetime)
            # Python 3.13 and later refuse a chain without these two.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def write_signing_key(path: Path) -> Path:
    """Write a fresh private key, with which the API server signs the tokens of service accounts."""
    write_private_key(path, ec.generate_private_key(ec.SECP256R1()))
    return path


def write_private_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a key as unencrypted PEM that only its owner can read."""
    # Not PKCS #8: the API server takes public keys only from this form of a private key.
    form = serialization.PrivateFormat.TraditionalOpenSSL
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(encoding, form, plain))


def _name(common_name: str, *organisations: str) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organisations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
