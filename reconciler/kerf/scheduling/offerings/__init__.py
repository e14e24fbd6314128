"""What new nodes can be: NodePools, instance types, their prices and reservations."""
