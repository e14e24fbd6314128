"""The CEL rules of the CRDs."""
