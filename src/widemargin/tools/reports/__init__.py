"""Pages of one file: figures drawn as SVG, the tables they are drawn from, and the words around them."""
