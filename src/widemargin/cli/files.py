"""How the command line writes whether indices count from 0, and what the library calls it."""

ZERO_BASED = {"auto": "auto", "yes": True, "no": False}
