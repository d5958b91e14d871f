"""Importers of published tables, one file each."""
