"""What an operator sees: JSON logs, Prometheus metrics and Kubernetes events, by the names Karpenter's users know.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    telemetry.py     what a pass has done, as logs, metrics and events
    object_changes.py troubles.py
    log/             log lines in JSON
    series/          metrics and their values                events.py   Kubernetes events
    catalogue/       every metric and event there is
    precedence.py reconciling.py repeats.py turns.py
"""
