"""Where each pod is placed: on an existing node, or to a NodePool and the domains of a new one."""
