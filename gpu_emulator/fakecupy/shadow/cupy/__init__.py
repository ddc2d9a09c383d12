"""What a child process finds as ``cupy`` where this folder is on its path: the fake, installed by its first import.

In: the environment of ``python -m gpu_emulator``.  Out: ``cupy`` and the rest in ``sys.modules``.  Promise: what the child's machine
noted is on its error output at the end.
"""

import atexit

from gpu_emulator import fakecupy

atexit.register(fakecupy.report, fakecupy.install())
