"""Readers, one file for each kind of data: files as they are published become plain rows."""
