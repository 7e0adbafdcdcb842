"""Results: the shape of score records and what is computed over them."""
