"""What libraries under a runtime do with a kernel: which code they choose by sizes, what it copies and repeats."""
