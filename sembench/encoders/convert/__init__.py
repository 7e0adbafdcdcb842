"""Converters: fetched files into an ordinary model folder, one file a kind."""
