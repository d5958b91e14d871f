"""Text for people: tables, sentences and progress bars on a terminal, and JSON for programs."""
