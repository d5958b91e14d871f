"""Two releases compared on a page: what became slower, and what faster."""
