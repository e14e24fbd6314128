"""The v1 kinds as frozen typed values, decoded once at the door; behind it there are no dicts."""
