"""``python -m gpu_emulator script.py [args]`` or ``-m module [args]``: run it with ``cupy`` meaning the fake.

In: a command line as Python's own; ``LAZYNP_FAKECUPY_SEED``.  Out: the script's exit status, or 1 if the machine noted a violation.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

from gpu_emulator import fakecupy
from gpu_emulator.fakecupy import importing


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"]:
        print("usage: python -m gpu_emulator script.py [args] | -m module [args]", file=sys.stderr)
        return 2
    if arguments[:2] == ["-m", "pytest"]: # the plugin does it, here and in pytest's workers
        return subprocess.call([sys.executable, "-m", "pytest", "-p", "gpu_emulator.plugin", *arguments[2:]])
    importing.share()
    fake = fakecupy.install()
    status = 0
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return status or int(fakecupy.report(fake) > 0)


if __name__ == "__main__":
    sys.exit(main())
