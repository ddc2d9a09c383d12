"""What ``help`` shows of a public name.

In: a function of ours with its own docstring, and NumPy's function of that name.  Out: one docstring: what the function does, in our own
words where there are any; one line on when it computes; parameters, results and errors.  Promise: NumPy's sections are read from NumPy's
docstrings at run time, none of their text is here; a section that NumPy has not, or that ``python -OO`` has dropped, is left out.  The
module is loaded when a help text is read.
"""

from __future__ import annotations

import sys
from inspect import cleandoc
from typing import Any, Final

import numpy as np

from lazynp.values.loading import load

RECORDED: Final = "Recorded: computed when a value is needed, together with the operations around it; of small arrays at the call."
ITEM: Final = "Recorded: a routine of NumPy, run when a value is needed; of small arrays at the call."
AT_CALL: Final = "Computed at the call."
ROUTINE: Final = "Computed at the call, by a routine of NumPy."
NOTHING: Final = "Answered at the call; no array is computed."
BY_NUMPY: Final = "By NumPy itself, at the call; ``lazynp.report()`` counts it."
WHEN: Final = (RECORDED, ITEM, AT_CALL, ROUTINE, NOTHING, BY_NUMPY)

# Functions and methods that are not simply recorded.  A test calls them all and sees what happens.
_VALUES: Final = (
    "allclose array_equal array_equiv trim_zeros realize apply_along_axis argwhere bincount flatnonzero frombuffer fromfile fromregex "
    "genfromtxt intersect1d load loadtxt nested_iters nonzero setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse "
    "unique_values ndenumerate nditer broadcast vectorize ndarray.realize ndarray.to_numpy ndarray.item ndarray.tolist ndarray.tobytes "
    "linalg.matrix_norm fft.fftfreq fft.rfftfreq ndarray.tofile ndarray.dump ndarray.dumps ndarray.resize ndarray.nonzero "
    "mask_indices tril_indices tril_indices_from triu_indices triu_indices_from"
)
_QUESTIONS: Final = (
    "can_cast common_type device einsum_path explain finfo frompyfunc iinfo iscomplexobj isdtype isfortran isrealobj isscalar issubdtype "
    "iterable may_share_memory memory min_scalar_type ndim report result_type schedule set_fallback shape shares_memory size coverage "
    "__array_namespace_info__ ndarray.setflags"
)
_AT_CALL: Final = frozenset(_VALUES.split())
_NOTHING: Final = frozenset(_QUESTIONS.split())

# Functions whose docstring in NumPy refers to another one's: name -> whose parameters and results they have.
_AS: Final = {
    "amax": "max", "amin": "min", "around": "round", "array_split": "split", "dsplit": "split", "hsplit": "split", "vsplit": "split",
    "triu": "tril", "array_str": "array_repr", "tril_indices_from": "tril_indices", "triu_indices_from": "triu_indices",
    "ranf": "random_sample", "sample": "random_sample", "random": "random_sample",
}  # fmt: skip

# What NumPy's docstrings do not say.
_WRITERS: Final = (
    "copyto fill_diagonal place put put_along_axis putmask save savetxt random.seed ndarray.dump ndarray.fill ndarray.partition "
    "ndarray.put ndarray.setflags ndarray.sort ndarray.tofile"
)
_RETURNS: Final = {
    **dict.fromkeys(_WRITERS.split(), "None"),
    "diag_indices": "tuple of ndarray\n    An array of positions for each axis.",
    "diag_indices_from": "tuple of ndarray\n    An array of positions for each axis.",
    "finfo": "numpy.finfo\n    NumPy's own object.",
    "iinfo": "numpy.iinfo\n    NumPy's own object.",
    "fromfile": "ndarray\n    The items in one dimension.",
    "polyint": "ndarray or poly1d\n    The coefficients, highest power first.",
    "linalg.matrix_norm": "ndarray or scalar\n    One norm for each matrix.",
    "linalg.vector_norm": "ndarray or scalar\n    One norm for each vector.",
    "ndarray.copy": "ndarray\n    An array of its own, in the order that was asked for.",
    "ndarray.dumps": "bytes\n    What ``pickle.loads`` reads.",
    "ndarray.getfield": "ndarray\n    The bytes at the offset of each element, as the other dtype.",
    "ndarray.view": "ndarray\n    The same memory.",
}
_PARAMETERS: Final = {"random.seed": "seed : int or array_like of ints, optional\n    Where the numbers begin."}

_OWN: Final[dict[str, dict[str, str]]] = {"Parameters": _PARAMETERS, "Returns": _RETURNS}
_NUMPYS: Final = ("Parameters", "Returns", "Yields", "Raises", "Warns")  # sections that are taken from NumPy, in this order
_SECTIONS: Final = (*_NUMPYS, "Attributes", "See Also", "Notes", "References", "Examples")


def _heading(text: str, name: str) -> int:
    """Return where the section ``name`` begins, -1 where there is none."""
    at = text.find(f"{name}\n")
    while at >= 0:
        indent = at - text.rfind("\n", 0, at) - 1
        under = at + len(name) + 1 + indent
        if text.startswith("---", under):
            return at
        at = text.find(f"{name}\n", under)
    return at


def section(text: str, name: str) -> str:
    """Return a section of a docstring in NumPy's style, heading included and not indented; empty where there is none."""
    at = _heading(text, name)
    if at < 0:
        return ""
    margin = "\n" + " " * (at - text.rfind("\n", 0, at) - 1)
    end = text.find(f"{margin}---", text.find("\n", at) + len(margin))
    part = (text[at:] if end < 0 else text[at : text.rfind("\n", 0, end)]).rstrip()
    return part.replace(margin, "\n")


def without_array(parameters: str) -> str:
    """Remove the array itself from a function's parameters: those of the method."""
    lines = parameters.split("\n")
    starts = [k for k, line in enumerate(lines) if k > 1 and line[:1].strip()]
    for at in [k for k in starts if lines[k].startswith("a :")] or starts[:1]:
        del lines[at : next((k for k in starts if k > at), len(lines))]
    return "\n".join(lines) if len(lines) > 2 else ""


def summary(text: str) -> str:
    """Return the first paragraph of a docstring of NumPy's, the signature left out."""
    return next((p for p in cleandoc(text).split("\n\n", 4) if "(" not in p.partition(" ")[0]), "").strip()


def completed(path: str, own: str | None, when: str, theirs: list[str], method: bool = False) -> str | None:
    """Make the whole docstring.

    Parameters
    ----------
    path : str
        The name below the package.
    own : str or None
        Our own, of one line or with sections, which come before NumPy's.
    when : str
        The line about when it computes.
    theirs : list of str
        NumPy's docstrings: each section is the first one's that has it.
    method : bool
        Whether the first parameter that NumPy describes is the array whose method this is.

    Returns
    -------
    str or None
        None where neither has a docstring.
    """
    if not own:
        own = summary(theirs[0]) if theirs else ""
    if not own or when in own:
        return own or None
    sections = {}
    if "\n" in own:
        own = cleandoc(own)
        if "\n---" in own:
            sections = {name: part for name in _SECTIONS if (part := section(own, name))}
            own = own[: min([_heading(own, name) for name in sections], default=len(own))]
    first, _, prose = own.partition("\n\n")
    parts = [first, when, prose.strip()]
    for name in _SECTIONS:
        part = sections.get(name, "")
        if not part and name in _NUMPYS:
            part = next((part for text in theirs if (part := section(text, name))), "")
            if method and name == "Parameters" and part:
                part = without_array(part)
            known = _OWN.get(name, {}).get(path)
            if known and not part:
                part = f"{name}\n{'-' * len(name)}\n{known}"
        parts.append(part)
    return "\n\n".join([part for part in parts if part])


def when(name: str, answered: str | None) -> str:
    """Say when a function computes: ``name`` is its path below the package, ``answered`` what it says of itself."""
    if name in _AT_CALL:
        return ROUTINE if answered == "library" else AT_CALL
    if name in _NOTHING:
        return NOTHING
    return ITEM if answered == "library" else BY_NUMPY if answered == "fallback" else RECORDED


def texts_of(home: Any, name: str) -> list[str]:
    """Return the docstrings of NumPy's module ``home`` that describe a name of it, the first one its own."""
    found = [getattr(getattr(home, key, None), "__doc__", None) for key in (name, _AS.get(name, ""))]
    return [text for text in found if text]


def of_function(path: str, function: Any, own: str | None) -> str | None:
    """Make the docstring of a function or class of ours."""
    package, _, name = path.rpartition(".")
    texts = texts_of(sys.modules.get(f"numpy.{package}".rstrip(".")), name)
    if texts and own == texts[0]:
        own = None
    return completed(path, own, when(path, getattr(function, "answered", None)), texts)


def of_method(path: str, function: Any, own: str | None) -> str | None:
    """Make the docstring of a method: its sections are those of NumPy's method, else of NumPy's function, but for the array."""
    name = path.rpartition(".")[2]
    text = getattr(getattr(np.ndarray, name, None), "__doc__", None) or ""
    line = when(path, getattr(function, "answered", None))
    if own == text:
        own = summary(text)
    if _heading(text, "Parameters") >= 0 or _heading(text, "Returns") >= 0:
        return completed(path, own, line, [text])
    return completed(path, own or summary(text), line, texts_of(np, name), True)


def of_numpys(path: str, when: str) -> str:
    """Make the docstring of a function that is NumPy's, called on values of ours."""
    package, _, name = path.rpartition(".")
    texts = texts_of(sys.modules.get(f"numpy.{package}".rstrip(".")), name)
    return completed(path, None, when, texts) or f"Call ``numpy.{path}``.\n\n{when}"


def of_library(function: Any) -> str:
    """Make the docstring of a ``Library`` function."""
    return of_numpys(function._name, ROUTINE)


def of_fallback(function: Any) -> str:
    """Make the docstring of a ``Fallback`` function."""
    return of_numpys(function._name, BY_NUMPY)


def of_draw(draw: Any) -> str | None:
    """Make the docstring of a function or method that draws random numbers."""
    texts = [draw.__wrapped__.__doc__ or "", *texts_of(np.random, draw.__name__)]
    return completed(f"random.{draw.__name__}", None, ROUTINE, texts)


def of_ufunc(function: Any) -> str | None:
    """Make the docstring of a ufunc: NumPy's line with the signature, ours with what it does, NumPy's sections."""
    lines = load("lazynp.namespace.ufunc.docs").LINES
    name, theirs = function.__name__, (function._numpy.__doc__ or "").strip()
    answered = getattr(type(function), "answered", None)
    if answered is None:
        answered = "fallback" if function._lower is None else getattr(function._lower, "answered", None)
    signature = theirs.partition("\n\n")[0] if theirs.startswith(f"{name}(") else ""
    own = lines.get(name) or (summary(theirs) if signature else theirs)
    text = completed(name, own, when(name, answered), [theirs])
    return f"{signature}\n\n{text}" if signature else text
