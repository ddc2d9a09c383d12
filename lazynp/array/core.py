"""The core in use: the native one, or its Python twin.

In: what was built, and ``LAZYNP_PURE``.  Out: the names of whichever core it is; ``native``, ``reason`` and ``broken`` say which one,
why, and whether something is wrong.  Promise: a native core that does not load (never built, built for another Python or another NumPy)
is no error.
"""

from __future__ import annotations

from lazynp.values import config

__all__ = [
    "Cell", "Ufunc", "assign_rows", "bind", "broken", "chain", "chain_counts", "chain_sizes", "count", "function", "lend", "listen",
    "native", "reason", "register", "register_parts", "register_ufunc", "release", "settle", "show",
]  # fmt: skip

native = broken = False
reason = "turned off by LAZYNP_PURE"
if not config.pure:
    try:
        from lazynp.array._core import (
            Cell,
            Ufunc,
            assign_rows,
            bind,
            chain,
            chain_counts,
            chain_sizes,
            count,
            function,
            lend,
            listen,
            register,
            register_parts,
            register_ufunc,
            release,
            settle,
            show,
        )  # fmt: skip

        native, reason = True, ""
    except ModuleNotFoundError:
        reason = "not built when lazynp was installed (no C compiler, or one that failed)"
    except Exception as error:  # Cython raises what it likes where NumPy's structures differ from those it was built with
        broken, reason = True, f"does not load: {type(error).__name__}: {error}"
if not native:
    from lazynp.array._python import (
        Cell,
        Ufunc,
        assign_rows,
        bind,
        chain,
        chain_counts,
        chain_sizes,
        count,
        function,
        lend,
        listen,
        register,
        register_parts,
        register_ufunc,
        release,
        settle,
        show,
    )  # fmt: skip
