"""The same ports as the real world, in memory: an API server, a scheduler, kubelets, EC2 with weather, virtual time.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    world.py         all of it together
    controllers/     Deployments, DaemonSets, volumes         nodes/      kubelets
    scheduling/      the scheduler                            aws/        EC2
    api/             the API server
    clock.py faults.py phases.py weather.py
"""
