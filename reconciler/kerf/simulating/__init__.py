"""Users' tests for their NodePools: a scenario runs in the sandbox, with the real controller in it (`kerf simulate`).

playing.py       one run: the controller at work, with workloads and weather at their times
asserting.py     the assertions of a scenario, judged by the observations of a run
weather.py       events of EC2 and of nodes
observing.py     observations from the events of the API server and of EC2
observed.py      observations as values
results.py       figures and verdicts as values
world.py         the world at the start: the sandbox's or a snapshot's
catalogues.py    instance types that runs of one process share
account.py       AWS whose selectors always select
misses.py        assertions that had nothing to judge
effects.py       whether weather can have an effect
shortages.py     launches without capacity, and their weather
throttling.py    requests that are refused for a time
workloads.py     Deployments and their replicas over time
targets.py       names that cannot exist in the world
checking.py      rules between the fields of a scenario
objects/         objects that cannot have an effect
autoscalers/     models of other autoscalers, to compare with
reading.py       YAML values to a scenario, errors with their path
scenario.py      the types of a scenario file
"""
