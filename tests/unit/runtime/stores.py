"""An S3 server (moto's) with a bucket, reached by boto3 over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

REGION = "us-west-2"
BUCKET = "records"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def server() -> Iterator[str]:
    """The address of a server, which has no bucket yet."""
    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    try:
        host, port = made.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        made.stop()


def session() -> Any:
    return boto3.session.Session(aws_access_key_id="key", aws_secret_access_key="secret", region_name=REGION)


def client(url: str) -> Any:
    """The whole client of boto3, with which a test looks at the store."""
    return session().client("s3", endpoint_url=url)
