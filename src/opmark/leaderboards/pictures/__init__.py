"""Pictures and the shared look of pages: SVG and tables that need neither JavaScript nor a network."""
