"""Draw SVG pictures and tables, and the common look of all pages, without JavaScript or a network."""
