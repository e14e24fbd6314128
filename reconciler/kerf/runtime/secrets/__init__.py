"""Keys, certificates and tokens, and the Secrets that keep them."""
