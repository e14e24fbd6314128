"""What is changed in the account: fleets, launch templates, terminations."""
