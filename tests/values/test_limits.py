"""CPU and memory limits, read from invented control group files."""

import os

import pytest

from lazynp.values import limits

AFFINITY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def group(tmp_path, membership, files):
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "membership").write_text(membership)
    return str(tmp_path / "fs"), str(tmp_path / "membership")


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/", {}, AFFINITY),
        ("0::/", {"cpu.max": "max 100000\n"}, AFFINITY),
        ("0::/", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/", {"cpu.max": "1000 100000\n"}, 1),
        ("0::/", {"cpu.max": "110000 100000\n"}, min(2, AFFINITY)),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 1),  # a parent binds
        ("0::/gone", {"cpu.max": "50000 100000"}, 1),  # inside a container the path is not visible
        ("3:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "100000", "cpu/x/cpu.cfs_period_us": "100000"}, 1),
        ("3:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"}, AFFINITY),
        ("3:memory:/x", {"cpu.max": "100000 100000"}, AFFINITY),
        ("nonsense", {"cpu.max": "nonsense"}, AFFINITY),
    ],
)
def test_cpus(tmp_path, membership, files, expected):
    assert limits.cpus(*group(tmp_path, membership, files)) == expected


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a", {"a/memory.max": "1048576\n"}, 1 << 20),
        ("0::/a", {"a/memory.max": "max"}, None),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "1048576"}, 1 << 20),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "9223372036854771712"}, None),
    ],
)
def test_memory(tmp_path, membership, files, expected):
    unbound = limits.memory(*group(tmp_path, "", {}))
    assert unbound > 1 << 28
    assert limits.memory(*group(tmp_path, membership, files)) == (expected or unbound)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/memory.max": "1000000", "a/memory.current": "300000"}, 700_000),
        ({"a/memory.max": "1000000", "a/memory.current": "300000", "a/memory.stat": "anon 5\ninactive_file 100000\n"}, 800_000),
        ({"a/memory.max": "1000000", "a/memory.current": "2000000"}, 0),
        ({"a/memory.max": "max", "a/memory.current": "1"}, 5 << 20),
    ],
)
def test_free(tmp_path, files, expected):
    (tmp_path / "meminfo").write_text("MemTotal: 9999999 kB\nMemAvailable:    5120 kB\n")
    assert limits.free(*group(tmp_path, "0::/a", files), str(tmp_path / "meminfo")) == expected
    assert limits.free() > 0


def test_private_memory_is_unlimited_here():
    assert limits.private() == float("inf")
