"""Data sets: readers of the forms in which they are published, and makers of those that are made here."""
