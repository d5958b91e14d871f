"""The columns of units and tensors: made from their objects, or read straight from a large file."""
