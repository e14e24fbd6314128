"""The scale feed: `kerf run` on 5,000 nodes and 100,000 pods that a loopback server plays, and what it costs.

Everything reaches the controller as it would in a cluster: JSON of real size over HTTP through the official client, EC2
through boto3. `make bench-feed` runs it; `python -m benchmarks.feed --help` lists what can be varied.
"""
