"""Game packages, one a folder."""
