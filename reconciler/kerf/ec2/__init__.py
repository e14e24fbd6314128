"""What EC2's facts mean: instance types, prices, user data, fleet requests, drift, interruptions. Pure.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    nodeclass/       what an EC2NodeClass selects, its validation, drift
    launch/          fleet requests and launch templates      instances.py
    instance_types/  labels, capacity, overhead               userdata/   user data of each image family
    pricing/         prices of offerings
    quotas.py        used-up quotas                       refused_launches.py   errors of launches, since when
    addresses.py errors.py families.py images.py interruptions.py node_health.py placement.py tags.py
"""
