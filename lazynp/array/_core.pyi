"""What a type checker sees of the native core: its twin."""

from lazynp.array._python import Cell as Cell
from lazynp.array._python import Ufunc as Ufunc
from lazynp.array._python import bind as bind
from lazynp.array._python import function as function
from lazynp.array._python import listen as listen
from lazynp.array._python import register as register
from lazynp.array._python import register_parts as register_parts
from lazynp.array._python import register_ufunc as register_ufunc
from lazynp.array._python import release as release
from lazynp.array._python import show as show
