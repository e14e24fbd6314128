"""What a cluster and an account lack for Kerf to work there, found before anything is launched.

Files, from the top:

    run.py           all checks in their order               checks.py slips.py  their phases, permissions and lines
    situation.py     for which Kerf: the installed one (installed.py), or one to come (values.py)
    identity.py      region, name of the cluster, clocks     cluster.py served.py  kinds, CRDs, permissions
    account.py account_limits.py surroundings.py to_come.py  the account
    controller.py admission.py                               the controller and the webhook that run
    asking.py findings.py                                    questions that are not refused, and results
"""
