"""What a type checker sees of the native core: its twin."""

from lazynp.array._python import Cell as Cell
from lazynp.array._python import Elements as Elements
from lazynp.array._python import Ufunc as Ufunc
from lazynp.array._python import any_of as any_of
from lazynp.array._python import assign_rows as assign_rows
from lazynp.array._python import bind as bind
from lazynp.array._python import chain as chain
from lazynp.array._python import chain_counts as chain_counts
from lazynp.array._python import chain_sizes as chain_sizes
from lazynp.array._python import count as count
from lazynp.array._python import function as function
from lazynp.array._python import kind as kind
from lazynp.array._python import lend as lend
from lazynp.array._python import listen as listen
from lazynp.array._python import of_types as of_types
from lazynp.array._python import read_chosen as read_chosen
from lazynp.array._python import register as register
from lazynp.array._python import register_kinds as register_kinds
from lazynp.array._python import register_parts as register_parts
from lazynp.array._python import register_ufunc as register_ufunc
from lazynp.array._python import release as release
from lazynp.array._python import settle as settle
from lazynp.array._python import share as share
from lazynp.array._python import show as show
from lazynp.array._python import workers as workers
from lazynp.array._python import write_chosen as write_chosen
