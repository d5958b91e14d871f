"""Drawing: SVG pictures, tables and the shared look of pages, without JavaScript or a network."""
