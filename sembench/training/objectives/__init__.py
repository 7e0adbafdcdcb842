"""Training objectives, one file a kind; see ``base.Objective`` for what a file gives."""
