"""Contrastive training: objective, batches, loop, checkpoint."""
