"""Most pods of a real control plane go: how soon, how cheaply and with how many evictions nodes follow; two sides."""
