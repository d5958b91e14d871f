"""The copies, the memory and the plan of a training step of several micro-batches."""
