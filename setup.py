"""The native core's build; everything else is in pyproject.toml.

In: the sources of the extension modules, a C compiler if there is one.  Out: the package, with the native core where it could be built.
Promise: no compiler, a compiler that fails, no Cython and no NumPy headers are warnings; the package then works without it.
``LAZYNP_PURE=1`` does not even try, and makes a ``py3-none-any`` wheel.
"""

import importlib
import os
import pathlib
import platform
import sys
import types
import warnings

from setuptools import Extension, setup

SOURCES = {
    "lazynp/array/_core": [
        "cell.h", "numbers.h", "parts.h", "workers.h", "pieces.h", "pool.h", "powers.h", "sides.h", "compiled.h", "polynomials.h",
        "inner_loops.h", "direct.h", "products.h", "contraction.h", "rows.h", "row_loops.h", "ordered.h", "loops.h", "chain.h", "lag.h",
        "passes.h", "frames.h", "hot.h", "tape_values.h", "puts.h", "computing.h", "casts.h", "operands.h", "chains.h", "writes.h",
        "truths.h", "compress.h", "choosing.h", "searching.h", "memory_read.h", "nonzero.h", "operators.h", "subscripts.h",
        "iteration.h", "slots.h", "items.h", "putting.h", "attributes.h", "sums.h", "spread.h", "extremes.h", "made.h", "signatures.h",
        "function_table.h", "at_call.h", "lists.h", "asked.h", "answers.h", "recorded_calls.h", "signature_calls.h", "function_calls.h",
        "ufunc_calls.h", "functions.h", "programs.h", "counting.h",
    ],
    "lazynp/graph/_native": ["node.h", "canonical.h", "record.h"],
    "lazynp/backends/common/_launch": ["launch.h"],
    "lazynp/backends/llvm/_background": ["background.h", "child.h"],
    "lazynp/namespace/draws/_native": ["words.h", "numbers.h", "twister.h", "calls.h"],
}
if os.name == "nt":
    del SOURCES["lazynp/backends/llvm/_background"]  # its thread is one of POSIX


def write_functions():
    """Write the C of the mathematical functions from their definitions, which are part of a package that cannot be imported yet."""
    path = ""
    for name in ("lazynp", "backends", "llvm", "polynomials"):
        path = f"{path}{'/' * bool(path)}{name}"
        package = sys.modules[path.replace("/", ".")] = types.ModuleType(path.replace("/", "."))
        package.__path__ = [path]
    text = importlib.import_module("lazynp.backends.llvm.polynomials.c").header()
    header = pathlib.Path("lazynp/array/polynomials.h")
    if not header.exists() or header.read_text() != text:
        header.write_text(text)


# Products and sums are rounded apart, as NumPy's are; where functions and loops begin is worth some per cent of small operations.
FLAGS = ["-ffp-contract=off", "-falign-functions=64", "-falign-loops=32"]


def extensions():
    if os.environ.get("LAZYNP_PURE", "").strip().lower() in ("1", "true", "yes") or platform.python_implementation() != "CPython":
        return []
    try:
        import numpy
    except ImportError:
        warnings.warn("NumPy is not there to build with: lazynp's native core is left out", stacklevel=2)
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:  # an sdist has the C sources
        cythonize = None
        if not all(os.path.exists(source + ".c") for source in SOURCES):
            warnings.warn("Cython is not there to build with: lazynp's native core is left out", stacklevel=2)
            return []
    write_functions()
    sources = [
        Extension(
            source.replace("/", "."),
            [source + (".c" if cythonize is None else ".pyx")],
            include_dirs=[numpy.get_include()],
            depends=[f"{os.path.dirname(source)}/{header}" for header in headers],
            extra_compile_args=[] if os.name == "nt" else FLAGS,
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        )
        for source, headers in SOURCES.items()
    ]
    made = sources if cythonize is None else cythonize(sources)
    for extension in made:
        extension.optional = True  # cythonize does not keep it
    return made


setup(ext_modules=extensions())
