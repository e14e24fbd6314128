"""An API server: objects, admission, eviction, watches."""
