"""Ufuncs and what is made of them: the table, the loops, the objects, their methods, operators and reductions."""
