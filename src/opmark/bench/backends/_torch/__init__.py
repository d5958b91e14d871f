"""ATen calls with their tensors, on processors and on GPUs."""
