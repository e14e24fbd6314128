"""The webhook's certificate: made here, kept in a Secret, known to the API server through the configurations' caBundle.

A new certificate comes with a CA of its own, whose key is thrown away; the old CA stays in the bundle until the next
time, so that webhook pods which still serve the old certificate are trusted meanwhile.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kerf.ports import AlreadyGone
from kerf.runtime.secrets.stored_secret import Requests, StoredSecret

LIFETIME = timedelta(days=365)
#: A certificate is replaced when less than this is left of it.
RENEW_BEFORE = timedelta(days=120)
_SKEW = timedelta(minutes=5)
_STRATEGIC = "application/strategic-merge-patch+json"
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/{}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """PEM: the CAs to trust, the serving certificate and its key."""

    ca: bytes
    cert: bytes
    key: bytes

    @classmethod
    def of_secret(cls, secret: Mapping[str, Any]) -> Bundle | None:
        data = secret.get("data") or {}
        try:
            return cls(*(base64.b64decode(data[name], validate=True) for name in ("ca.crt", "tls.crt", "tls.key")))
        except (KeyError, ValueError):
            return None

    def data(self) -> dict[str, str]:
        """As a Secret has it."""
        parts = {"ca.crt": self.ca, "tls.crt": self.cert, "tls.key": self.key}
        return {name: base64.b64encode(pem).decode() for name, pem in parts.items()}

    def serves(self, names: tuple[str, ...], now: datetime) -> bool:
        """Whether it is good for these names, and for long enough, with the key of its certificate."""
        try:
            cert = x509.load_pem_x509_certificate(self.cert)
            alternatives = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            key = serialization.load_pem_private_key(self.key, None)
        except (TypeError, ValueError, UnsupportedAlgorithm, x509.ExtensionNotFound):
            return False
        known = set(alternatives.get_values_for_type(x509.DNSName))
        lasts = cert.not_valid_after_utc - now > RENEW_BEFORE
        return known.issuperset(names) and lasts and self.trusts and key.public_key() == cert.public_key()

    @property
    def expires(self) -> datetime | None:
        """When the serving certificate expires; None when it cannot be read."""
        try:
            return x509.load_pem_x509_certificate(self.cert).not_valid_after_utc
        except ValueError:
            return None

    @property
    def trusts(self) -> bool:
        """Whether the CAs are certificates: the API server refuses a configuration with anything else."""
        try:
            return bool(x509.load_pem_x509_certificates(self.ca))
        except ValueError:
            return False


def make(names: tuple[str, ...], now: datetime) -> Bundle:
    """A new CA and a certificate by it for these DNS names."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kerf webhook CA")])
    ca = (
        _template(ca_name, ca_name, ca_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    cert = (
        _template(name, ca_name, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Bundle(ca.public_bytes(pem), cert.public_bytes(pem), private)


def _template(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def service_names(namespace: str, service: str) -> tuple[str, ...]:
    """The names by which the API server calls a Service."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"


def write_files(folder: Path, names: tuple[str, ...], now: datetime) -> Bundle:
    """A new bundle as ca.crt, tls.crt and tls.key in a folder; the key is readable by its owner only."""
    bundle = make(names, now)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(bundle.ca)
    (folder / "tls.crt").write_bytes(bundle.cert)
    key = folder / "tls.key"
    key.touch(mode=0o600)
    key.write_bytes(bundle.key)
    return bundle


class WebhookCertificate:
    """Keeps Secret and configurations as they should be. `keep` may run as often as one likes, in every replica.

    The webhook's pods wait for the Secret, and installers for the pods, also while a Karpenter controller leads: so any
    replica makes it. Only the leader replaces one.
    """

    def __init__(self, kube: Requests, *, namespace: str, service: str, secret: str, configuration: str) -> None:
        self._kube, self._namespace, self._service = kube, namespace, service
        self._secret = StoredSecret(kube, namespace, secret, "kubernetes.io/tls")
        self._configuration = configuration
        #: When the certificate that was read last expires; None when none was read.
        self.expires: datetime | None = None

    def keep(self, now: datetime, *, leads: bool = True) -> bool:
        """Make, renew and announce what needs it; whether anything was written. Raises PortError."""
        bundle, written = self._bundle(now, leads)
        if bundle is None:
            return False
        for which in ("validating", "mutating"):
            written |= self._announce(_CONFIGURATIONS.format(which, self._configuration), bundle.ca)
        return written

    def _bundle(self, now: datetime, leads: bool) -> tuple[Bundle | None, bool]:
        """What the Secret holds; None when that is for the leader to replace."""
        names = service_names(self._namespace, self._service)
        secret = self._secret.read()
        known = Bundle.of_secret(secret) if secret is not None else None
        self.expires = known.expires if known is not None else None
        if known is not None and known.serves(names, now):
            return known, False
        if secret is not None and not leads:
            return (known if known is not None and known.trusts else None), False
        fresh = make(names, now)
        if known is not None and known.trusts:
            fresh = Bundle(fresh.ca + _first(known.ca), fresh.cert, fresh.key)
        self._secret.write(secret, fresh.data())
        return fresh, True

    def _announce(self, path: str, ca: bytes) -> bool:
        try:
            configuration = self._kube.request("GET", path)
        except AlreadyGone:
            return False
        text = base64.b64encode(ca).decode()
        stale = [w["name"] for w in configuration.get("webhooks") or () if self._is_stale(w["clientConfig"], text)]
        if stale:
            patch = {"webhooks": [{"name": name, "clientConfig": {"caBundle": text}} for name in stale]}
            self._kube.request("PATCH", path, patch, content_type=_STRATEGIC)
        return bool(stale)

    def _is_stale(self, client: Mapping[str, Any], ca: str) -> bool:
        service = client.get("service") or {}
        ours = (service.get("namespace"), service.get("name")) == (self._namespace, self._service)
        return ours and client.get("caBundle") != ca


def _first(pem: bytes) -> bytes:
    """The newest CA of a bundle."""
    end = b"-----END CERTIFICATE-----\n"
    return pem[: pem.find(end) + len(end)] if end in pem else b""
