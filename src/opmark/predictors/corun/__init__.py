"""The slowdown of a kernel by what runs on another core: sensitivity times pressure."""
