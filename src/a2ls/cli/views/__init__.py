"""How commands show what they do and what they found."""
