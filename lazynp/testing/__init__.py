"""``numpy.testing`` for our arrays, and plugins that run the tests of others on lazynp.

In: names of ``numpy.testing``; ``pytest -p lazynp.testing.sklearn`` and its neighbours.  Out: what
``lazynp.namespace.submodules.testing`` says of the names; plugins as modules of this package.  Promise: NumPy's module is
imported when a name is asked for, a plugin when pytest asks for it.
"""

from sys import modules as _modules

from lazynp.array.core import native as _native

if _native:
    from lazynp.namespace.bridge.fallback import adopt_package as _adopt

    _adopt(_modules[__name__])
else:
    from numpy.testing import *  # noqa: F403 (NumPy computes, and compares)
