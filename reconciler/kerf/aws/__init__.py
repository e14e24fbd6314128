"""boto3 behind the Cloud port: EC2 and its neighbours, one module per service, errors classified by what to do next.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    cloud.py         the port
    dry_runs.py probes.py surroundings.py facts_of_account.py  what preflight asks
    observe/         what the account has                     launch/     fleets, launch templates, terminations
    interruptions.py profiles.py buckets.py
    requests/        clients, pace, pages, errors
"""
