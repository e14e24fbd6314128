"""Nodes that come up other than planned: the evidence, and the inputs whose change may help."""
