"""Rules that are no part of the schema: what the controller, EC2 or IAM would refuse."""
