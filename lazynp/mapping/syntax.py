"""The syntax tree of a user's module, mapped before it is compiled.

In: source text, or its tree.  Out: the same program, importing lazynp where it imports NumPy; calls that may bring NumPy when they run go
through ``twins``, which they find under one name more among the builtins.  Promise: nothing else is changed, every line and column stays.
"""

from __future__ import annotations

import ast
import re
import sys
from types import CodeType
from typing import Any, Final, TypeVar

HANDLE: Final = "__lazynp__"  # what a mapped module calls the mapping, among Python's builtins
OURS: Final = "lazynp"
THEIRS: Final = "numpy"
_TREE_LIMIT: Final = 10_000  # nested expressions of a mapped module

EDITION: Final = 6  # one more whenever a text is mapped otherwise: pytest keeps what it compiled
# What may bring NumPy into a module when it runs, or reads a float or an array from memory; as attributes (`importlib.import_module`), too,
# where no other object has such methods.  Methods of the program's own that are called so are found not to be Python's, in `twins`.
_IMPORTING: Final = ("__import__", "import_module", "importorskip")  # the latter is pytest's
CALLS: Final = (*_IMPORTING, "spec_from_file_location", "run_path", "exec", "compile", "Decimal", "timedelta", "sleep", "shuffle")
_SOURCES: Final = ("importlib", "importlib.util", "builtins", "runpy", "datetime", "decimal", "time", "pytest")  # what has them
_BARE: Final = ("exec", "compile")
_PROTOCOLS: Final = {"__array_function__": "asked", "__array_ufunc__": "asked", "__array__": "given"}  # and what maps such a method
_CONCERNED: Final = re.compile(
    rb"numpy|__array_(?:(?:ufunc|function)_)?_|__import__|import_module|spec_from_file_location|run_path|Decimal|timedelta|sleep|shuffle|(?<!\.)\b(exec|compile|type)\s*\("
)
_Tree = TypeVar("_Tree", bound=ast.AST)


def renamed(name: str) -> str:
    """``numpy.linalg`` -> ``lazynp.linalg``."""
    return OURS + name[len(THEIRS) :]


def is_numpy(name: object) -> bool:
    return isinstance(name, str) and (name == THEIRS or name.startswith(THEIRS + "."))


# The syntax tree ------------------------------------------------------------------------------------------------------


def _mapped_import(statement: ast.Import) -> list[ast.stmt]:
    """One import statement as the statements that bind the same names to lazynp; they keep its position."""
    mapped: list[ast.stmt] = []
    for alias in statement.names:
        name = alias.name
        if not is_numpy(name):
            mapped.append(ast.Import([alias]))
        elif alias.asname is not None or name == THEIRS:
            mapped.append(ast.Import([ast.alias(renamed(name), alias.asname or THEIRS)]))
        else:
            # `import numpy.linalg` loads the submodule and binds the package
            mapped.append(ast.Import([ast.alias(renamed(name), THEIRS)]))
            mapped.append(ast.Import([ast.alias(OURS, THEIRS)]))
    return [ast.fix_missing_locations(ast.copy_location(new, statement)) for new in mapped]


def _with_twins(call: ast.Call, concerned: set[str]) -> None:
    """Let a call that may bring NumPy when it runs go through its twin: only there is known what its function is."""
    match call.func:
        case ast.Attribute(value=array, attr="view") if _names_the_class(call):
            call.args.insert(0, array)
            call.func = _through("viewed", call.func)
            return
        case ast.Name(id=name) if name in concerned:
            pass
        case ast.Attribute(attr=name) if name in CALLS and name not in _BARE:
            pass
        case _:
            return
    match call.args:
        case [ast.Constant(value=str(text)) as constant, *_] if name in _IMPORTING:
            if is_numpy(text):
                constant.value = renamed(text)
        case [first, *_] if name == "exec" and not isinstance(first, ast.Starred):
            call.args[0] = _through("executed", first, ast.Name(name, ast.Load()), first)  # exec itself looks at the frame that calls it
        case _ if name != "exec":
            call.func = _through("twin", call.func, call.func)


def _names_the_class(call: ast.Call) -> bool:
    """Tell whether something called ``ndarray`` is among the arguments."""
    values = [*call.args, *[keyword.value for keyword in call.keywords]]
    return any(value.attr == "ndarray" if isinstance(value, ast.Attribute) else getattr(value, "id", "") == "ndarray" for value in values)


def _of_kinds(nodes: list[ast.AST]) -> None:
    """Let ``type(x)`` go through ``twins`` where it is compared or looked up; who calls a class, or reads from it, has the right one."""
    owners = [node.value if isinstance(node, ast.Attribute) else node.func for node in nodes if isinstance(node, ast.Attribute | ast.Call)]
    used = {*map(id, owners)}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="type") as function, args=[value], keywords=[]) if id(node) not in used:
                if not isinstance(value, ast.Starred):
                    node.args = [function, value]
                    node.func = _through("kind", function)


def _with_all_names(node: ast.AST) -> None:
    """Let ``np.__dict__`` and ``vars(np)``, whatever the module is called there, be read when all names are there.

    lazynp makes most of them when they are asked for.
    """
    match node:
        case ast.Attribute(value=ast.Name(id=name) as module, attr="__dict__", ctx=ast.Load()) if name not in ("self", "cls"):
            node.value = _through("complete", module, module)
        case ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=name) as module]) if name not in ("self", "cls"):
            node.args[0] = _through("complete", module, module)


_LINEAGE: Final = ("__mro__", "__bases__", "__base__")


def _with_names_of_numpys(node: ast.AST, modules: set[str]) -> None:
    """Let what a module is called, and what a class derives from, be read as NumPy has it."""
    match node:
        case ast.Attribute(value=ast.Name(id=name) as module, attr="__name__", ctx=ast.Load()) if name in modules:
            node.value = _through("numpys", module, module)
        case ast.Attribute(value=kind, attr=name, ctx=ast.Load()) if name in _LINEAGE:
            node.value = _through("lineage", kind, kind)
        case ast.Call(func=ast.Attribute(value=kind, attr="mro") as method, args=[], keywords=[]):
            method.value = _through("lineage", kind, kind)


def _hearing_ours(method: ast.FunctionDef) -> None:
    """Let the protocols of a user's class be asked with the functions that its module knows, and give NumPy arrays of its own."""
    if method.name in _PROTOCOLS and method.args.args:
        place = ast.copy_location(ast.Constant(None), method)
        method.decorator_list.append(_through(_PROTOCOLS[method.name], place))


def _through(function: str, old: ast.expr, *arguments: ast.expr) -> ast.expr:
    """A call of a function of the package, in the place of an expression."""
    made: ast.expr = ast.Attribute(ast.Name(HANDLE, ast.Load()), function, ast.Load())
    call = ast.Call(made, list(arguments), []) if arguments else made
    return ast.fix_missing_locations(ast.copy_location(call, old))


# Most nodes of a tree, of which nothing here asks anything.
_LEAVES: Final = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.alias)


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """List the nodes of a tree, but for leaves: ``ast.walk`` takes as long as everything else that is done to a module."""
    nodes = [tree]
    for node in nodes:  # which grows meanwhile
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes.extend([item for item in value if isinstance(item, ast.AST) and not isinstance(item, _LEAVES)])
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                nodes.append(value)
    return nodes


def map_tree(tree: _Tree) -> _Tree:
    """Rewrite the imports of NumPy in place.  Iterative: programs with very deep expressions are allowed."""
    nodes = _nodes(tree)
    concerned = {*CALLS}
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(alias.asname or THEIRS for alias in node.names if is_numpy(alias.name))
        if isinstance(node, ast.ImportFrom) and node.module in _SOURCES:
            concerned.update(alias.asname for alias in node.names if alias.asname and alias.name in CALLS)
    _of_kinds(nodes)
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(name), level=0) if is_numpy(name):
                node.module = renamed(name)
            case ast.Call():
                _with_twins(node, concerned)
            case ast.FunctionDef():
                _hearing_ours(node)
        _with_all_names(node)
        _with_names_of_numpys(node, modules)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            # a lambda's or a conditional expression's body is one expression
            if isinstance(block, list):
                block[:] = [
                    new
                    for old in block
                    for new in (_mapped_import(old) if isinstance(old, ast.Import) and any(is_numpy(a.name) for a in old.names) else [old])
                ]
    return tree


def concerns(source: bytes | str) -> bool:
    """Tell whether a text may import NumPy."""
    return _CONCERNED.search(source.encode(errors="replace") if isinstance(source, str) else source) is not None


def compile_mapped(source: bytes | str, filename: str, mode: str = "exec", flags: int = 0, optimize: int = -1) -> CodeType:
    """Compile source text with its imports of NumPy mapped to lazynp.

    Parameters
    ----------
    source : bytes or str
        As read from the file; an encoding declaration is honoured.
    filename : str
        Shown in tracebacks, and where they look for the lines.
    mode, flags, optimize
        As Python's own compiler has them.

    Raises
    ------
    SyntaxError
        As Python's own compiler would.
    """
    if not concerns(source):
        return compile(source, filename, mode, flags, dont_inherit=True, optimize=optimize)
    # trees are walked by C code that counts against Python's limit, and reaches it long before the compiler proper does
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _TREE_LIMIT))
    try:
        tree: Any = compile(source, filename, mode, flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        return compile(map_tree(tree), filename, mode, flags, dont_inherit=True, optimize=optimize)
    finally:
        sys.setrecursionlimit(limit)
