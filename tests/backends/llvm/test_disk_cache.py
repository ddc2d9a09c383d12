"""The cache of machine code on disk: what it refuses, what it survives, what it bounds."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lazynp.backends.common import disk_cache
from lazynp.backends.common.disk_cache import STALE_SECONDS, DiskCache, default_directory
from lazynp.values import config

KEY = "a" * 64


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "parent" / "cache")


def only_file(cache):
    (path,) = files(cache)
    return path


def files(cache):
    return list(Path(cache.directory).iterdir())


def test_what_was_put_is_got(cache):
    assert cache.get(KEY) is None
    cache.put(KEY, b"machine code")
    assert cache.get(KEY) == b"machine code"
    assert (cache.hits, cache.misses) == (1, 1)


def test_the_directory_and_its_files_are_private(cache):
    cache.put(KEY, b"machine code")
    if sys.platform != "win32":
        assert stat.S_IMODE(os.stat(cache.directory).st_mode) == 0o700
        assert stat.S_IMODE(only_file(cache).stat().st_mode) == 0o600


def damage(path, how):
    content = path.read_bytes()
    if how == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "other format":
        path.write_bytes(b"lazynp0\n" + content[8:])
    elif how == "longer":
        path.write_bytes(content + b"x")


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "other format", "longer"])
def test_a_damaged_file_is_removed_and_may_be_written_again(cache, how):
    cache.put(KEY, b"machine code")
    damage(only_file(cache), how)
    assert cache.get(KEY) is None
    assert not files(cache)
    cache.put(KEY, b"machine code")
    assert cache.get(KEY) == b"machine code"


def test_a_file_under_another_name_is_not_believed(cache):
    cache.put(KEY, b"machine code")
    path = only_file(cache)
    path.rename(path.with_name("b" * 64 + path.suffix))
    assert cache.get("b" * 64) is None


def test_the_size_is_bounded_and_the_unused_go_first(tmp_path):
    cache = DiskCache(tmp_path / "cache", limit=10_000)
    for i in range(20):
        cache.put(f"{i:064}", bytes(1000))
        path = os.path.join(cache.directory, f"{i:064}.obj")
        os.utime(path, (1000 + i, 1000 + i))
    assert cache.get(f"{0:064}")  # using it makes it young
    cache.trim()
    left = sorted(int(path.stem) for path in files(cache))
    assert left == [0, *range(12, 20)]


def test_writing_bounds_the_size_by_itself(tmp_path):
    cache = DiskCache(tmp_path / "cache", limit=10_000)
    for i in range(disk_cache.TRIM_EVERY * 2 + 1):
        cache.put(f"{i:064}", bytes(1000))
    assert sum(path.stat().st_size for path in files(cache)) <= 10_000


def test_what_dead_processes_left_is_removed_and_other_files_stay(cache):
    cache.put(KEY, b"machine code")
    old, young, foreign = (Path(cache.directory, name) for name in ("old.tmp", "young.tmp", "notes.txt"))
    for path in (old, young, foreign):
        path.write_text("x")
    long_ago = time.time() - 2 * STALE_SECONDS
    os.utime(old, (long_ago, long_ago))
    os.utime(foreign, (long_ago, long_ago))
    cache.trim()
    assert not old.exists()
    assert young.exists()
    assert foreign.exists()


def test_a_directory_that_vanishes_is_no_error(cache):
    cache.put(KEY, b"machine code")
    only_file(cache).unlink()
    os.rmdir(cache.directory)
    assert cache.get(KEY) is None
    cache.put(KEY, b"machine code")
    cache.trim()
    cache.remove(KEY)


def test_a_file_in_the_way_is_no_error(tmp_path):
    (tmp_path / "cache").write_text("not a directory")
    cache = DiskCache(tmp_path / "cache")
    cache.put(KEY, b"machine code")
    assert cache.get(KEY) is None
    assert cache.directory is None
    assert cache.refused


def test_a_directory_others_may_write_to_is_refused(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    cache = DiskCache(tmp_path / "cache")
    if sys.platform != "win32":
        assert cache.directory is None
        assert "0777" in cache.refused


def test_a_directory_others_may_read_is_closed_to_them(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o755)
    cache = DiskCache(tmp_path / "cache")
    if sys.platform != "win32":
        assert stat.S_IMODE(os.stat(cache.directory).st_mode) == 0o700


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    DiskCache(tmp_path / "cache")
    if sys.platform != "win32":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        cache = DiskCache(tmp_path / "cache")
        assert cache.directory is None
        assert "another user" in cache.refused


def test_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    assert DiskCache(tmp_path / "cache").directory is None


def test_a_file_system_that_cannot_be_written_is_no_error(cache, monkeypatch):
    cache.put(KEY, b"machine code")

    def refuse(*args, **kwargs):
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    cache.put("b" * 64, b"more")
    assert cache.get(KEY) == b"machine code"
    assert cache.get("b" * 64) is None
    damage(only_file(cache), "cut")
    assert cache.get(KEY) is None


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    cache.put(KEY, b"machine code")
    assert not files(cache)


@pytest.mark.slow
def test_two_processes_write_and_read_the_same_keys(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from pathlib import Path
from lazynp.backends.common.disk_cache import DiskCache
cache = DiskCache(Path({str(tmp_path / "cache")!r}), limit=20_000)
for turn in range(300):
    key = f"{{turn % 30:064}}"
    data = cache.get(key)
    assert data is None or data == key.encode() * 20, turn
    cache.put(key, key.encode() * 20)
    if turn % 50 == 0:
        cache.trim()
"""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert not [path for path in (tmp_path / "cache").iterdir() if path.suffix == ".tmp"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LAZYNP_CACHE_DIR": "/somewhere/else"}, "/somewhere/else"),
        ({"XDG_CACHE_HOME": "/caches"}, "/caches/lazynp"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/somebody"}, "/home/somebody/.cache/lazynp"),
        ({"HOME": "/home/somebody"}, "/home/somebody/.cache/lazynp"),
    ],
)
def test_where_the_directory_is(environment, expected, monkeypatch):
    monkeypatch.setattr(config, "cache_dir", config.parse(environment)["cache_dir"])
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if sys.platform == "linux":
        assert default_directory() == expected


def test_zero_turns_it_off(monkeypatch):
    monkeypatch.setattr(config, "cache", config.parse({"LAZYNP_CACHE": "0"})["cache"])
    cache = DiskCache.default()
    cache.put(KEY, b"machine code")
    assert cache.get(KEY) is None
    assert cache.refused == "turned off"
