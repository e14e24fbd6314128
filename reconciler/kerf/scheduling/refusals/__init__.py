"""Why a pod has no place, and which single edits may give it one."""
