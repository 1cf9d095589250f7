"""The commands, one module each: parse the options, call one function of `widemargin.workflows`, print."""
