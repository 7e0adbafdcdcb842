"""Reporting: cells with their comparison to the paper, and tables, figures and the page made of them."""
