"""Mapped modules, compiled once: Python keeps what it compiles beside a module, and what is mapped must not get there.

In: the text of one of the user's modules.  Out: its code, compiled now or by an earlier process.  Promise: the code is what
``compile_mapped`` makes of that very text under that very name, by this Python and this mapping; it is kept where machine code is kept
(``backends/common/disk_cache``), in files that no other user may write, and never where ``-B`` or ``LAZYNP_CACHE=0`` forbids it.
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import sys
from types import CodeType
from typing import Any

from lazynp.backends.common import disk_cache
from lazynp.mapping import syntax


def compile_kept(source: bytes, filename: str) -> CodeType:
    """Compile the text of a module as ``compile_mapped`` does, unless that was done before.

    Raises
    ------
    SyntaxError
        As Python's own compiler would.
    """
    cache = disk_cache.shared()
    if cache.directory is None:
        return syntax.compile_mapped(source, filename)
    key = disk_cache.digest(repr((_maker(), filename)).encode(errors="surrogatepass") + source).hex()
    data = cache.get(key)
    if data is not None:
        code = marshal.loads(data)  # the very bytes that were put: the cache compares their digest
        assert isinstance(code, CodeType)
        return code
    code = syntax.compile_mapped(source, filename)
    if not sys.dont_write_bytecode:
        cache.put(key, marshal.dumps(code))
    return code


@functools.cache
def _maker() -> tuple[object, ...]:
    """Return what makes the code: this Python, as it was started, and the text of the mapping."""
    loader: Any = syntax.__loader__  # also of a package in a zip
    return importlib.util.MAGIC_NUMBER, sys.version, sys.flags.optimize, disk_cache.digest(loader.get_data(syntax.__file__))
