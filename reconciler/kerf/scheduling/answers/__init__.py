"""What the scheduler answers: a solution, the account of a refusal, edits, and the NodeClaim of a planned node."""
