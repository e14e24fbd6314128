"""Snapshots as files: what `decide` sees, without secrets, in a format that later versions read.

captured.py    a Snapshot and the facts of the region from which its instance types were computed
fields.py      the fields and annotations that a file contains
sanitizing.py  objects without the texts that a file must not contain
hashes.py      hashes over what a file leaves out or renames
shapes.py      maps and fields of the values in a file
naming.py      names as pseudonyms of the same order
plain.py       facts of AWS and of the controller as JSON values, and back
lines.py       the lines of a file
writing.py     from a Snapshot to lines
reading.py     from lines to a Snapshot
files.py       the bytes of a file
"""
