"""Stored graphs: their file format, and those that come with OpMark."""
