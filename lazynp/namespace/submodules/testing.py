"""``numpy.testing``: assertions about values.

In: what NumPy's assertions compare.  Out: the same assertions, about the values of our arrays.  Promise: what calls functions of the
user's, or looks at no values, is NumPy's own object.
"""

from __future__ import annotations

from typing import Any, Final

from lazynp.namespace.bridge.fallback import library_attribute

_COMPARING: Final = frozenset(
    {
        "assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_array_almost_equal", "assert_array_almost_equal_nulp",
        "assert_array_compare", "assert_array_equal", "assert_array_less", "assert_array_max_ulp", "assert_equal", "assert_string_equal",
        "print_assert_equal",
    }
)  # fmt: skip


def attribute(value: Any, name: str) -> Any:
    """Make what ``lazynp.testing.<name>`` is."""
    return library_attribute(value, f"testing.{name}") if name in _COMPARING else value


FUNCTIONS: Final[dict[str, Any]] = {}
