"""The process around the loop: signals, health, the debug port, connections, the clock, memory."""
