"""Worker processes: the backend's interface, timing inside a worker, and the pool of workers."""
