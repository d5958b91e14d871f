"""One model in many configurations: batch sizes, sizes, targets and element types, and which of them is best."""
