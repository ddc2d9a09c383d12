"""What only arrays on a GPU need: placing them, sharing them, writing at positions, and routines made of what a GPU has."""
