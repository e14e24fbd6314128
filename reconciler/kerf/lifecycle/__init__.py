"""The life of what exists: launch, registration, initialisation, drain, termination, garbage; pool and class status."""
