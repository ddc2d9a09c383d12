from lazynp.array._python import Cell as Cell
from lazynp.array._python import register as register
