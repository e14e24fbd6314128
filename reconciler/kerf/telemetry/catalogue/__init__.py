"""Every metric and event there is: name, labels, buckets and help."""
