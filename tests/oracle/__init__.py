"""The kube-scheduler's own plugins as an oracle: where pods can run, and where a queue of pods is bound.

The program:

    binaries.py      builds it (`tests/cluster/tools/oracle`), once for each Kubernetes version
    client.py        starts it, asks it about worlds, restarts it when it dies
    test_oracle.py   small worlds, at least one for each plugin of the default profile that filters nodes
    rules.py         rules that are easily misread, each a world with a known end (`known.py`, `objects.py`)
    test_versions.py    the same worlds by the oldest version, and 20,000 worlds by one process (in `make long`)

Random worlds, and the comparison with Kerf (`python -m tests.oracle`):

    features.py      the table: the name of a feature, its draw, and whether a world has it
    draws_pods.py, draws_nodes.py    draws that the differential test does not have
    sketch.py        a world under construction, and its manifests
    worlds.py        a seed -> a world
    ours.py          a world -> the engine's answer; planned nodes as manifests
    compare.py       the engine's answer beside the plugins, in three directions
    referee.py       the referee beside the plugins
    difference.py    a disagreement
    exceptions.py    rules by which Kerf differs on purpose
    pending.py       disagreements that are open
    test_launches.py     missed nodes, whatever the planned nodes become, and while none is without pods
    test_known_worlds.py    the same comparison on the worlds with a known end
    campaign.py      many seeds, and the table
    planted.py, hunt.py    misreadings of the rules in the engine, which the comparison must find
"""
