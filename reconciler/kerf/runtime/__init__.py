"""The loop: observe, decide, act. Threads, the worker process, leader election, health and settings live here.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    program.py       `kerf run` as a process
    controller.py parts.py  the loop                         preflight/  what a cluster and an account lack
    process/         signals, health, the debug port, connections, the clock
    observe/         watches, lists and polls                act/        actions and their results
    status.py        what `kerf status` shows                noticed.py  what was noticed, to telemetry
    state/           what is known, between observation and snapshot
    secrets/         keys, certificates, tokens              settings/   flags and variables
    leadership/      the lease                               proposer.py the process for consolidation
                                                             repetition.py when it need not be asked
    inbox.py         messages of threads to the loop         questions.py  their questions to it
"""
