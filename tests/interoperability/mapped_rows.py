"""The rows of ``swapped_programs`` as one program: ``python mapped_rows.py SIZE ROWS RESULTS``, or ``python -m lazynp mapped_rows.py ...``.

In: the number of elements, a JSON file with texts by name, and where to write.  Out: what each leaves, in plain values and NumPy's arrays,
or what it raised.  A text is compiled under the name of a file beside this one, so that it is mapped where this program is.
"""

import json
import os
import pickle
import sys
import traceback
import warnings

import numpy as np


def run(name, text, n):
    x = np.linspace(-1, 1, n)
    x = np.rint((x * x * x + x) * 2**20) / 2**20  # whose sums are exact in any order
    folder = Path(sys.argv[3] + "-" + "".join(c if c.isalnum() else "_" for c in name))
    folder.mkdir()
    space = {
        "np": np, "numpy": np, "n": n, "folder": folder, "x": x, "i": np.arange(n) * 7 % 11 + 1, "b": x * 3 % 1 > 0.4,
        "m": (np.arange(n) * 0.7 % 5 - 2).reshape(-1, 8), "__name__": "row",
    }  # fmt: skip
    code = compile(text, os.path.join(os.path.dirname(os.path.abspath(__file__)), "row.py"), "exec")
    exec(code, space)
    return plain(space["result"])


def plain(value):
    if isinstance(value, (np.ndarray, np.generic)):
        # an object that holds an array of ours would bring it along
        value = value.tolist() if value.dtype == object else sys.modules["numpy"].asarray(value)
        return plain(value) if isinstance(value, list) else ("array", value)
    if type(value).__module__.startswith("pandas"):
        return "pandas", type(value).__name__, plain(value.to_numpy())
    if isinstance(value, dict):
        return "mapping", [plain(key) for key in value], [plain(one) for one in value.values()]
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [plain(one) for one in value]
    if type(value) in (bool, int, float, complex, str, bytes, bytearray, type(None)):
        return value
    return type(value).__name__ if isinstance(value, type) or "array" in type(value).__name__ else repr(value)


if __name__ == "__main__":
    from pathlib import Path

    warnings.simplefilter("ignore")
    with open(sys.argv[2], encoding="utf-8") as file:
        rows = json.load(file)
    found = {}
    for name, text in rows.items():
        try:
            found[name] = run(name, text, int(sys.argv[1]))
        except Exception:
            found[name] = "raised", traceback.format_exc()
    with open(sys.argv[3], "wb") as file:
        pickle.dump(found, file)
