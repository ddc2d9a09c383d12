"""The laws of the house: who may import whom, where the environment is read, where facts of operations stand, and that no name is dead.

``python -m tests.test_house`` prints the exceptions with their reasons and the circles of imports.  Lists of exceptions only shrink: an
entry that is no longer needed fails as a new violation does.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import lazynp
from lazynp.graph.op import Op

ROOT: Final = Path(lazynp.__file__).parent.parent
CONFIGURATION: Final = ROOT / "docs" / "configuration.md"
ROOTS: Final = ("lazynp", "tests", "bench", "conformance", "examples", "docs", "tools")
MODULES: Final = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.glob("lazynp/**/*.py"))
}

# From the ground to the roof: a module imports what stands below it, or in its own room.  A prefix may name a single module, and the
# longest one counts; rooms of one floor do not know each other.
FLOORS: Final = [
    ["values"],
    ["array"],  # the native core of nodes and cells
    ["graph"],
    ["schedule"],
    ["codegen"],
    ["backends.base backends.common"],
    ["backends.special"],
    ["backends.numpy", "backends.llvm", "backends.cuda"],
    ["engine"],
    ["namespace.docstrings"],
    [
        "arrays attributes bounds conversion layout protocols scalars storage subclasses viewing views array.hand "
        "array.calls array.dispatch array.plain array.regimes array.tapes namespace.indexing namespace.assignment"
    ],
    ["namespace.standard namespace.ufunc.promotion namespace.device.placement"],
    ["namespace.bridge"],
    ["namespace.ufunc"],
    ["namespace.routines"],
    ["namespace.device"],
    ["namespace.special", "namespace.draws"],
    ["namespace.submodules"],
    ["namespace"],
    [""],  # the doors: the package itself, its commands, lazynp.special and lazynp.testing
]
PLACE: Final = {prefix: (floor, room) for floor, rooms in enumerate(FLOORS) for room in rooms for prefix in (room.split() or [""])}

UPWARD: Final = {
    "lazynp.namespace.bridge.fallback -> lazynp": "names of NumPy that a foreign library asks for are looked up in the package",
    "lazynp.namespace.bridge.fallback -> lazynp.namespace.ufunc.ufuncs": "a ufunc that NumPy gives out is answered by ours",
    "lazynp.namespace.coverage -> lazynp": "coverage asks every public name who answers it",
    "lazynp.namespace.docstrings -> lazynp.namespace.help_texts": "help texts are made when one is read",
    "lazynp.namespace.routines.correlation -> lazynp.namespace.submodules.linalg": "a covariance is a matrix product, which lives there",
    "lazynp.protocols -> lazynp": "the namespace of an array is the package",
    "lazynp.protocols -> lazynp.namespace.standard": "seen through the standard, which has arrays where NumPy has scalars",
}

# Variables of other programs, read where they are needed; lazynp's own are read in ``values/config.py`` alone.
FOREIGN: Final = {
    "LOCALAPPDATA": "the system's",
    "PYTHONSTARTUP": "Python's",
    "SCIPY_ARRAY_API": "SciPy's",
    "XDG_CACHE_HOME": "the system's",
}

# Groups of operations outside op.py: each says what one module does with them, which is not a fact of the operations.
GROUPS: Final = {
    "lazynp.backends.cuda.errors.STRICT": "where a thread's look at results has no excuse",
    "lazynp.backends.cuda.scalars.MATH": "C's functions that the table of texts does not have, from the column of C names",
    "lazynp.backends.llvm.mathlib._NOT_CALLED": "instructions of LLVM's",
    "lazynp.backends.llvm.render._DIVISIONS": "what is rendered with a test of the divisor",
    "lazynp.backends.llvm.scalars.MATH": "functions of the mathematical library that the table of texts does not have",
    "lazynp.backends.llvm.supported.INSTRUCTIONS": "operations with a name in C that instructions compute",
    "lazynp.backends.llvm.supported.WITHOUT": "what the table of texts does not have",
    "lazynp.backends.numpy.together.VIEWED": "what needs no line of its own place",
    "lazynp.backends.numpy.together.VIEWS": "views that may lie in another order",
    "lazynp.backends.llvm.scalars.VANISHING": "functions of libmvec that return zero without the flag",
    "lazynp.backends.numpy.operations._NOT_UFUNCS": "what NumPy has no ufunc for",
    "lazynp.backends.numpy.source.NAMED_OUT": "ufuncs of NumPy whose third operand wants a name",
    "lazynp.codegen.reduce.HARMLESS": "what may be computed of the zeros that fill the last lanes",
    "lazynp.namespace.device.accumulating._RING": "what accumulates at positions without an order",
    "lazynp.schedule.claims.VIEWS": "movements that a library can follow",
    "lazynp.viewing._FIRST_STEPS": "steps of a view whose geometry can wait",
    "lazynp.views._NEEDS_OLD": "steps of a view that write a part",
    "lazynp.views._OVERLAPPING": "steps of a view that make elements one in memory",
    "lazynp.views._SIMPLE": "steps of a view that fold in any order",
}

# Names that nothing in the package, the benchmarks, the conformance runners and the examples uses.
UNUSED: Final = {
    "lazynp.backends.llvm.compiler.optimised_ir": "tests look at what LLVM made of a kernel",
    "lazynp.engine.realize.forget_plans": "tests start with an empty cache",
    "lazynp.namespace.help_texts.WHEN": "all that a help text may say of when a function computes, which tests read",
    "lazynp.namespace.ufunc.table.ELSEWHERE": "NumPy's ufuncs that are not in the table, which tests read",
    "lazynp.testing.scipy.pytest_collection_modifyitems": "pytest calls it",
    "lazynp.testing.scipy.pytest_configure": "pytest calls it",
    "lazynp.testing.scipy.pytest_generate_tests": "pytest calls it",
    "lazynp.testing.swap.pytest_load_initial_conftests": "pytest calls it",
}

LINES: Final = 600  # of a file written by hand, at most
LONG: Final = {
    "graph/canonical.h": "one walk over a program, whose parts share its tables",
    "array/_core.pyx": "all that Python sees of the native core",
    "arrays.py": "the class of arrays: to be its own file, without the functions around it",
    "storage.py": "drafts, exports and what is read of memory: to be two files",
    "namespace/bridge/fallback.py": "to be two files: the calls of NumPy, and their count",
    "namespace/ufunc/ufuncs.py": "the class of ufuncs, and how a call finds its loop: to be two files",
    "views.py": "views and the arithmetic of strides: to be two files",
}

# Public names that hide a module of the package, and why nobody is misled.
HIDDEN: Final = {
    "array": "lazynp.array() is public; the package is loaded before the function is asked for",
    "schedule": "lazynp.schedule() is public; the package is loaded before the function is asked for",
}

REBOUND: Final = 2  # module variables that functions of a module may rebind; more of them are an object


class Import(NamedTuple):
    module: str
    when: str  # "module", "local" (inside a function) or "types" (under TYPE_CHECKING)


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


@functools.cache
def imports(module: str) -> frozenset[Import]:
    """What a module of the package imports of it."""
    found: set[Import] = set()

    def visit(node: ast.AST, when: str) -> None:
        match node:
            case ast.ImportFrom(module=str(source), level=0):
                modules = [f"{source}.{alias.name}" if f"{source}.{alias.name}" in MODULES else source for alias in node.names]
            case ast.Import():
                modules = [alias.name for alias in node.names]
            case ast.Call(func=ast.Name(id="import_module" | "_import_module" | "load"), args=[ast.Constant(value=str(name))]):
                modules = [name]
            case _:
                modules = []
        found.update(Import(name, when) for name in modules if name in MODULES)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            when = "local"
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            when = "types"
        for child in ast.iter_child_nodes(node):
            visit(child, when)

    visit(tree(MODULES[module]), "module")
    return frozenset(found)


@functools.cache
def place(module: str) -> tuple[int, str]:
    """The floor and the room of a module."""
    name = module.removeprefix("lazynp").removeprefix(".")
    while name not in PLACE:
        name = name.rpartition(".")[0]
    return PLACE[name]


def upward() -> set[str]:
    """The imports that do not lead down, nor stay in the room."""
    found = set()
    for module in MODULES:
        floor, room = place(module)
        for source in {imported.module for imported in imports(module)}:
            below, other = place(source)
            if below > floor or (below == floor and other != room):
                found.add(f"{module} -> {source}")
    return found


def circles(edges: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The groups of modules each of which imports every other one, by way of others perhaps."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen, waiting = set(), list(edges[start])
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting.extend(edges[node])
        reached[start] = seen
    found = {frozenset(other for other in reached[start] if start in reached[other]) for start in edges}
    return [set(group) for group in found if len(group) > 1]


def import_time_circles() -> list[set[str]]:
    """Circles of imports that run when a module is loaded."""
    return circles({module: [found.module for found in imports(module) if found.when == "module"] for module in MODULES})


def variables_read(module: str) -> Iterator[str]:
    """The environment variables that a module reads by name; "?" for any other use of the environment."""
    for node in nodes(MODULES[module]):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get" | "pop"), args=[ast.Constant(value=name), *_]):
                yield name
            case ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"), args=[ast.Constant(value=name), *_]):
                yield name
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=name), ctx=ast.Load()):
                yield name
            case ast.Subscript(value=ast.Attribute(attr="environ"), ctx=ast.Load()):
                yield "?"


def _words(path: Path) -> Counter[str]:
    """The names that a file uses, also those within short strings, which tables of names are made of."""
    found: Counter[str] = Counter()
    for node in nodes(path):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                found[name] += 1
            case ast.alias(name=name):
                found[name.rpartition(".")[2]] += 1
            case ast.Constant(value=str(text)) if len(text) < 200:
                found.update(re.findall(r"[A-Za-z_]\w*", text))
    return found


def _defined(module: str) -> Iterator[str]:
    """The names that a module defines at its top level; operations enter their table by being made."""
    for node in tree(MODULES[module]).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(value=ast.Call(func=ast.Name(id="Op"))):
                pass
            case ast.Assign(targets=targets):
                yield from [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def unused() -> set[str]:
    """Names defined in the package that nobody uses but tests."""
    own = {module: _words(path) for module, path in MODULES.items()}
    everybody: Counter[str] = Counter()
    for words in own.values():
        everybody.update(words)
    for source in (path for pattern in ("*.h", "*.pyx") for path in (ROOT / "lazynp").rglob(pattern)):  # modules are asked for these
        everybody.update(re.findall(r"(?<=\")[A-Z_]+(?=\")|(?<=\"\)\.)\w+", source.read_text(encoding="utf-8")))
    for folder in ("bench", "conformance", "examples"):
        for path in ROOT.glob(f"{folder}/**/*.py"):
            everybody.update(_words(path))
    return {f"{module}.{name}" for module in MODULES for name in _defined(module) if not (name.startswith("__") or everybody[name])}


def groups() -> set[str]:
    """The sets, lists and tuples of operations that stand in modules other than op.py."""
    from lazynp.graph import op

    known = {id(value) for value in vars(op).values()}
    found: set[str] = set()
    for module in MODULES:
        if module == "lazynp.graph.op" or module.startswith("lazynp.testing") or module.endswith("__main__"):
            continue
        own = set(_defined(module))
        for name, value in vars(importlib.import_module(module)).items():
            group = type(value) in (set, frozenset, list, tuple) and sum(isinstance(x, Op) for x in value) > 1
            if group and name in own and id(value) not in known:
                found.add(f"{module}.{name}")
    return found


def rebound(module: str) -> set[str]:
    """The module variables that functions rebind."""
    return {name for node in nodes(MODULES[module]) if isinstance(node, ast.Global) for name in node.names}


def test_imports_lead_down_and_the_exceptions_are_needed() -> None:
    found = upward()
    assert sorted(found - set(UPWARD)) == [], "these imports lead upward, or into another room of the same floor"
    assert sorted(set(UPWARD) - found) == [], "these exceptions are no longer needed: delete them"
    assert all(UPWARD.values()), "an exception has a reason"


def test_no_modules_import_each_other_while_they_are_loaded() -> None:
    assert import_time_circles() == []


def stand_ins(module: str) -> Iterator[tuple[str, str]]:
    """The names in a module that stand for modules which are loaded late, and for which."""
    for node in nodes(MODULES[module]):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names) | ast.List(elts=names)], value=ast.Call(func=ast.Name(id="late"), args=paths)):
                yield from [(ast.unparse(name), f"lazynp.{ast.literal_eval(path)}") for name, path in zip(names, paths, strict=True)]


def test_what_stands_for_a_module_is_that_module_to_the_type_checker_and_is_used() -> None:
    count = 0
    for module in MODULES:
        for name, source in stand_ins(module):
            count += 1
            aliases = [(node.module, alias) for node in nodes(MODULES[module]) if isinstance(node, ast.ImportFrom) for alias in node.names]
            known = [f"{package}.{alias.name}" for package, alias in aliases if name == (alias.asname or alias.name)]
            assert source in known, (module, name)
            assert any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in nodes(MODULES[module]))
    assert count > 150


def test_a_circle_is_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "d"]}) == [{"b", "c"}]


def test_the_environment_is_read_in_config_alone() -> None:
    found = {(module, name) for module in MODULES for name in variables_read(module) if module != "lazynp.values.config"}
    assert sorted((module, name) for module, name in found if name not in FOREIGN) == []
    assert set(FOREIGN) == {name for _, name in found}


def test_every_switch_is_in_both_tables() -> None:
    text = MODULES["lazynp.values.config"].read_text(encoding="utf-8")
    document = ast.get_docstring(tree(MODULES["lazynp.values.config"])) or ""
    switches = set(re.findall(r"\"(LAZYNP_\w+)\"", text))
    assert switches == set(re.findall(r"^LAZYNP_\w+", document, re.MULTILINE))
    assert switches == set(re.findall(r"^\| `(LAZYNP_\w+)`", CONFIGURATION.read_text(encoding="utf-8"), re.MULTILINE))


def test_operations_are_made_in_their_tables() -> None:
    """The graph's, and what only the values of a kernel's body are made of."""
    calls = {
        module
        for module in MODULES
        for node in nodes(MODULES[module])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and ast.unparse(node.func).split(".")[-1] == "Op"
    }
    assert calls == {"lazynp.graph.op", "lazynp.schedule.lower"}


def test_groups_of_operations_stand_in_op_or_say_what_is_done_with_them() -> None:
    found = groups()
    assert sorted(found - set(GROUPS)) == [], "a fact of operations belongs into op.py"
    assert sorted(set(GROUPS) - found) == [], "these entries are no longer needed: delete them"


def test_no_name_is_dead() -> None:
    found = unused()
    assert sorted(found - set(UNUSED)) == []
    assert sorted(set(UNUSED) - found) == [], "these entries are no longer needed: delete them"


def test_no_public_name_hides_a_module_without_a_note() -> None:
    top = {module.removeprefix("lazynp.").partition(".")[0] for module in MODULES} - {"lazynp"}
    hidden = {name for name in top & {*lazynp.__all__, *dir(lazynp)} if not isinstance(getattr(lazynp, name), ModuleType)}
    assert hidden == set(HIDDEN)


def test_files_that_texts_name_exist() -> None:
    files = {path.relative_to(ROOT).as_posix() for folder in ROOTS for path in ROOT.glob(f"{folder}/**/*.*")}
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *MODULES.values()]
    named = {(path.name, name) for path in texts for name in re.findall(r"`([\w/]+/\w+\.(?:py|md|h))`", path.read_text(encoding="utf-8"))}
    ends = {"/".join(parts[start:]) for parts in (file.split("/") for file in files) for start in range(len(parts))}
    assert sorted((path, name) for path, name in named if name not in ends) == []


def test_files_are_short_and_the_exceptions_are_needed() -> None:
    written = {path for ending in ("py", "pyx", "h") for path in ROOT.glob(f"lazynp/**/*.{ending}")}
    written.discard(ROOT / "lazynp/array/polynomials.h")  # made by a build
    long = {path.relative_to(ROOT / "lazynp").as_posix() for path in written if len(path.read_text(encoding="utf-8").splitlines()) > LINES}
    assert long == set(LONG)


def test_more_variables_than_two_are_an_object() -> None:
    assert not {module for module in MODULES if len(rebound(module)) > REBOUND}


def test_what_only_gnus_compilers_know_stands_where_the_compiler_is_one() -> None:
    found = []
    for header in {*ROOT.glob("lazynp/**/*.h")} - {*ROOT.glob("lazynp/namespace/draws/*.h")}:  # which need not be built
        asked: list[bool] = []  # of each condition that is open, whether it holds for these compilers alone
        for number, line in enumerate(header.read_text(encoding="utf-8").splitlines(), 1):
            if match := re.match(r"#\s*(if|elif|else|endif)", line):
                if match[1] != "if":
                    asked.pop()
                if match[1] != "endif":
                    asked.append("defined(__GNUC__)" in line or "defined(__SIZEOF_INT128__)" in line)
            elif re.search(r"\b(__builtin_|__attribute__|__int128|restrict\b)", line) and not any(asked):
                found.append(f"{header.name}:{number}")
    assert not found


if __name__ == "__main__":
    tables = {"imports that lead upward": UPWARD, "groups of operations": GROUPS, "names nobody uses": UNUSED, "hidden modules": HIDDEN}
    for title, table in tables.items():
        print(f"{title}: {len(table)}")
        for entry, reason in table.items():
            print(f"  {entry}: {reason}")
    print("circles at import time:")
    for circle in import_time_circles():
        print(f"  {len(circle)}: {', '.join(sorted(circle))}")
