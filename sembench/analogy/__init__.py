"""Sentence relations from word analogies: BATS, sense inventories, filters, DSBATS-sn and DSBATS4CL."""
