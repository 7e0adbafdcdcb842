"""Kinds of tables and figures, one file a kind."""
