"""Facts about the libraries under a runtime: the code that each chooses by sizes, and what it copies and repeats."""
