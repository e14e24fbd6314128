"""Objects of an S3 bucket, or of a store with the same API, under one prefix.

Source: Amazon S3 API reference, PutObject, GetObject, ListObjectsV2 and DeleteObject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from urllib3.exceptions import HTTPError

from kerf.aws.requests.clients import MOST_PAGES, Clients
from kerf.aws.requests.errors import translated
from kerf.ports import Unavailable
from kerf_api.texts import without_credentials

#: Encryption by keys of S3 (SSE-S3), and none: a store that has none refuses a request for it.
SSE_S3, UNENCRYPTED = "AES256", "none"
#: Encryption by the KMS key that AWS manages for S3, once and twice.
_MANAGED: Final = ("aws:kms", "aws:kms:dsse")
_PIECE: Final = 256 * 1024


class Bucket:
    """The objects under an address `s3://bucket/prefix`, by their names: keys without the prefix.

    Threads may share it. All methods raise PortError.
    """

    def __init__(self, clients: Clients, address: str, encryption: str = SSE_S3) -> None:
        """`encryption` of new objects is `none`, a value of S3 (`AES256`, `aws:kms`, `aws:kms:dsse`), or the ID, ARN or
        alias of a KMS key."""
        self.address: Final = address
        self._bucket, _, prefix = address.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._clients, self._encryption = clients, encryption

    def put(self, name: str, data: bytes) -> None:
        """Create or replace an object."""
        self._call("PutObject", "put_object", Key=self._prefix + name, Body=data, **_encrypted(self._encryption))

    def objects(self) -> dict[str, tuple[int, datetime]]:
        """The bytes of each object and the store's time of its upload, by name; none of deeper folders."""
        found: dict[str, tuple[int, datetime]] = {}
        token: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            page = self._call("ListObjectsV2", "list_objects_v2", Prefix=self._prefix, Delimiter="/", **token)
            rows = page.get("Contents", ())
            try:
                found |= {row["Key"].removeprefix(self._prefix): (row["Size"], row["LastModified"]) for row in rows}
                if not page.get("IsTruncated"):
                    return found
                token = {"ContinuationToken": page["NextContinuationToken"]}
            except KeyError as error:
                problem = f"the answer has no {error.args[0]}; the store must have ListObjectsV2"
                raise Unavailable(f"s3:ListObjectsV2: {problem}") from error
        raise Unavailable(f"s3:ListObjectsV2: more than {MOST_PAGES} pages; use a prefix with fewer objects")

    def fetch(self, name: str, path: Path, most_bytes: int) -> int:
        """Save an object as a file; its bytes. It may have grown since it was listed. Raises OSError, too."""
        body = self._call("GetObject", "get_object", Key=self._prefix + name)["Body"]
        size = 0
        with path.open("xb") as file:
            for piece in _pieces(partial(body.read, _PIECE)):
                size += len(piece)
                if size > most_bytes:
                    raise Unavailable(f"s3:GetObject: {name} has more than {most_bytes:,} bytes")
                file.write(piece)
        return size

    def delete(self, name: str) -> None:
        """Delete an object; one that is gone is no error."""
        self._call("DeleteObject", "delete_object", Key=self._prefix + name)

    def _call(self, operation: str, method: str, **parameters: Any) -> Any:
        with translated(f"s3:{operation}"):
            return getattr(self._clients.get("s3"), method)(Bucket=self._bucket, **parameters)


def _pieces(read: Callable[[], bytes]) -> Iterator[bytes]:
    with translated("s3:GetObject"):
        try:
            yield from iter(read, b"")
        except HTTPError as error:  # a connection that ends within the object
            raise Unavailable(without_credentials(f"s3:GetObject: {error}")) from error


def _encrypted(encryption: str) -> Mapping[str, str]:
    if encryption == UNENCRYPTED:
        return {}
    if encryption in (SSE_S3, *_MANAGED):
        return {"ServerSideEncryption": encryption}
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": encryption}
