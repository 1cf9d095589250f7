"""The program `widemargin`."""
