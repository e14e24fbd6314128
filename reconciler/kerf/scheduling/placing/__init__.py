"""Where each pod goes: on an existing node, or to a NodePool and the domains of a new one."""
