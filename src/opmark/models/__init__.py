"""Networks: names, files, and the graphs of kernels that runtimes execute for them."""
