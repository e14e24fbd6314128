"""The flight recorder: decisions of the running controller, in files of a folder with bounds.

recorder.py  takes decisions from the loop's thread and writes them in a thread of its own
uploading.py copies of the files in a bucket
starting.py  the recorder of a process, by its settings
software.py  the versions for the header of a record
ring.py      the files: one for each part of a record; the oldest ones are deleted
"""
