"""Nodes that differ from their NodePool or EC2NodeClass, and the order of their replacement."""
