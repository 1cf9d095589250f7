"""Everything that talks to a person: the command line and the pictures."""
