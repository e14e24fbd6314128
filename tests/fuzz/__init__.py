"""Fuzzing: manifests and requests that nobody would write, made from sound ones, the same ones in every run."""
