"""New nodes for pods, by price: which sizes, which pods on which, and the types that each lists."""
