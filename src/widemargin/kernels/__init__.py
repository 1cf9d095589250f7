"""K(x, z): kernel functions, blocks of kernel rows, and what is kept of them."""
