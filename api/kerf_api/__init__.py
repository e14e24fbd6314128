"""The language everyone speaks: quantities, requirements, labels, and the kinds of the API as frozen values."""
