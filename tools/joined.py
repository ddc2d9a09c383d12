"""``python tools/joined.py A.xml B.xml ...``: JUnit files as one, on standard output; those that are not there were not made."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def main() -> None:
    joined = ElementTree.Element("testsuites")
    for name in sys.argv[1:]:
        if Path(name).exists():
            for suite in ElementTree.parse(name).getroot().iter("testsuite"):
                suite.set("name", Path(name).stem)
                joined.append(suite)
    ElementTree.ElementTree(joined).write(sys.stdout, "unicode")


if __name__ == "__main__":
    main()
