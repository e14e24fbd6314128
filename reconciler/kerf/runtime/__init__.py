"""The loop: observe, decide, act. Threads, the worker process, leader election, health and settings live here."""
