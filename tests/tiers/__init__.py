"""The tiers of the tests.

table.py     the tiers: those of `make test`, of `make e2e` and of `make long`
running.py   runs them stage by stage, the tiers of a stage side by side, and says at the end what ran
progress.py  which of them have passed on this state of the sources: a run that was stopped goes on there
"""
