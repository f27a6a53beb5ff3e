"""What a user writes and we read: oloproof.yaml, policy files and case files.

Every problem becomes a `ConfigurationError` that names the file, the line and the key.
"""
