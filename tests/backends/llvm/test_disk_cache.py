"""The cache of machine code on disk: what it refuses, what it survives, what it bounds."""

import os
import socket
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

    opened = os.open
    monkeypatch.setattr(os, "open", lambda name, flags, *mode, **at: (refuse if flags & os.O_CREAT else opened)(name, flags, *mode, **at))
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    cache.put("b" * 64, b"more")
    assert cache.get(KEY) == b"machine code"
    assert cache.get("b" * 64) is None
    damage(only_file(cache), "cut")
    assert cache.get(KEY) is None


# Attacks: by other users, and by what lies in the place of a file ------------------------------------------------------------

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a profile's directories private itself")


@posix
def test_who_exchanges_the_directory_exchanges_nothing(cache):
    cache.put(KEY, b"machine code")
    path = Path(cache.directory)
    path.parent.rename(path.parent.with_name("aside"))
    path.mkdir(parents=True)
    forged = DiskCache(path)
    forged.put(KEY, b"forged")
    assert cache.get(KEY) == b"machine code"
    cache.put("b" * 64, b"more")
    assert forged.get("b" * 64) is None
    cache.trim()
    cache.remove(KEY)
    assert forged.get(KEY) == b"forged"


@posix
@pytest.mark.parametrize(("mode", "trusted"), [(0o700, True), (0o755, True), (0o777, False), (0o707, False), (0o1777, True)])
def test_parents_that_others_may_write_are_refused(tmp_path, mode, trusted):
    parent = tmp_path / "a"
    (parent / "b").mkdir(parents=True)
    parent.chmod(mode)
    cache = DiskCache(parent / "b" / "cache")
    assert (cache.directory is not None) == trusted
    assert trusted or f"{parent} (mode {mode:04o})" in cache.refused


@posix
def test_a_parent_of_another_user_is_refused(tmp_path, monkeypatch):
    status = os.fstat

    def foreign(descriptor):
        found = list(status(descriptor))
        if os.path.samestat(status(descriptor), os.stat(tmp_path)):
            found[stat.ST_UID] = os.geteuid() + 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", foreign)
    cache = DiskCache(tmp_path / "cache")
    assert cache.directory is None
    assert f"{tmp_path} belongs to another user" in cache.refused


@posix
def test_a_group_of_the_users_own_may_write_to_parents(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o775)
    status = os.stat(tmp_path / "a")
    assert (DiskCache(tmp_path / "a" / "cache").directory is not None) == (status.st_uid == status.st_gid)


def in_place_of(path, what):
    path.unlink()
    match what:
        case "FIFO":
            os.mkfifo(path, 0o600)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(os.path.relpath(path))
        case "directory":
            path.mkdir()
        case "endless link":
            path.symlink_to("/dev/zero")
        case "link":
            other = path.with_name("other")
            other.write_bytes(b"something")
            path.symlink_to(other)
        case "circle":
            path.symlink_to(path.name)
        case "device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
            except PermissionError:  # the user's own name for a device, as far as the system lets him have one
                path.symlink_to("/dev/zero")
        case "hole":
            path.touch(0o600)
            os.truncate(path, 1 << 40)


@posix
@pytest.mark.parametrize("what", ["FIFO", "socket", "directory", "endless link", "link", "circle", "hole", "device"])
def test_what_is_no_file_in_the_place_of_one_neither_hangs_nor_fills_memory(cache, what, monkeypatch):
    cache.put(KEY, b"machine code")
    path = only_file(cache)
    monkeypatch.chdir(path.parent)  # a socket's name must be short
    in_place_of(path, what)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    assert cache.get(KEY) is None
    assert sys.platform != "linux" or len(os.listdir("/proc/self/fd")) == before
    cache.put(KEY, b"machine code")
    assert (cache.get(KEY) == b"machine code") == (what != "directory")
    cache.trim()


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_believed(cache, mode):
    cache.put(KEY, b"machine code")
    only_file(cache).chmod(mode)
    assert cache.get(KEY) is None
    assert not files(cache)


@posix
def test_a_file_of_another_user_is_not_believed(cache, monkeypatch):
    cache.put(KEY, b"machine code")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert cache.get(KEY) is None


@posix
def test_a_program_may_close_all_descriptors_and_use_their_numbers(cache, tmp_path):
    cache.put(KEY, b"machine code")
    (tmp_path / "elsewhere").mkdir()
    os.close(cache._descriptor)
    number = os.open(tmp_path / "elsewhere", os.O_RDONLY)
    os.dup2(number, cache._descriptor)
    taken = cache._descriptor
    try:
        assert cache.get(KEY) == b"machine code"
        cache.put("b" * 64, b"more")
        assert not list((tmp_path / "elsewhere").iterdir())
        del cache
        os.fstat(taken)  # it is the program's
    finally:
        for descriptor in {number, taken}:
            os.close(descriptor)


@posix
def test_the_descriptor_is_given_back(tmp_path):
    os.close(before := os.dup(0))  # the lowest number that is free
    for _ in range(3):
        DiskCache(tmp_path / "cache")
        (tmp_path / "open").mkdir(exist_ok=True)
        (tmp_path / "open").chmod(0o777)
        DiskCache(tmp_path / "open" / "cache")
    os.close(after := os.dup(0))
    assert after == before


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def refuse(*args, **kwargs):
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
