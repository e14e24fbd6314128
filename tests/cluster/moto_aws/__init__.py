"""AWS for tests: moto in a process of its own, taught what it lacks, with a cluster's surroundings already in place.

    with MotoAws() as aws:
        options = AwsOptions(cluster_name=aws.cluster_name, region=aws.region, endpoint_url=aws.endpoint_url)
        cloud = AwsCloud(options)
        aws.stock_out("m5.large", "us-west-2a", "spot")

It lives outside the test process, and dies with it. `python -m tests.cluster.moto_aws --port 5000` runs one by hand.
"""

from __future__ import annotations

from .client import Call, Fleet, MotoAws
from .settings import DISCOVERY_TAG, FAMILIES, MotoSettings

__all__ = ["DISCOVERY_TAG", "FAMILIES", "Call", "Fleet", "MotoAws", "MotoSettings"]
