"""The files of a release: columns of its tables and fields of its manifest."""
