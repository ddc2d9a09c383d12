"""The switches: what the environment may say."""

from __future__ import annotations

from typing import Any

import pytest

from lazynp.values import config


def test_defaults() -> None:
    assert config.parse({}) == {
        "backend": None,
        "device": "cpu",
        "tier": "auto",
        "eager": False,
        "tape_limit": 786432,
        "tape_first": None,
        "debug": False,
        "memory": None,
        "progress": False,
        "threads": None,
        "fallback": "silent",
        "adaptors": True,
        "numbers": "now",
        "numerics": "auto",
        "graphs": 0,
        "nvtx": False,
        "tf32": False,
        "cache": True,
        "cache_dir": "",
        "libmvec": "",
        "polynomials": True,
        "sklearn_namespace": "lazynp",
        "optimize": True,
        "compiler": "child",
        "pure": False,
    }


@pytest.mark.parametrize(
    ("name", "text", "setting", "value"),
    [
        ("LAZYNP_BACKEND", "numpy", "backend", "numpy"),
        ("LAZYNP_BACKEND", " llvm ", "backend", "llvm"),
        ("LAZYNP_TIER", "compiled", "tier", "compiled"),
        ("LAZYNP_EAGER", "1", "eager", True),
        ("LAZYNP_EAGER", "0", "eager", False),
        ("LAZYNP_TAPE_LIMIT", "100", "tape_limit", 100),
        ("LAZYNP_TAPE_LIMIT", "0", "tape_limit", 0),
        ("LAZYNP_TAPE_FIRST", "1000", "tape_first", 1000),
        ("LAZYNP_NUMERICS", "numpy", "numerics", "numpy"),
        ("LAZYNP_NUMERICS", "fast", "numerics", "fast"),
        ("LAZYNP_DEBUG", "True", "debug", True),
        ("LAZYNP_DEBUG", "0", "debug", False),
        ("LAZYNP_OPTIMIZE", "0", "optimize", False),
        ("LAZYNP_COMPILER", "wait", "compiler", "wait"),
        ("LAZYNP_CACHE", "0", "cache", False),
        ("LAZYNP_CACHE_DIR", "/some where", "cache_dir", "/some where"),
        ("LAZYNP_LIBMVEC", "avx2", "libmvec", "avx2"),
        ("LAZYNP_POLYNOMIALS", "0", "polynomials", False),
        ("LAZYNP_THREADS", "3", "threads", 3),
        ("LAZYNP_MEMORY", "2000000", "memory", 2000000),
        ("LAZYNP_MEMORY", "500m", "memory", 500 << 20),
        ("LAZYNP_MEMORY", " 2G", "memory", 2 << 30),
        ("LAZYNP_FALLBACK", "error", "fallback", "error"),
    ],
)
def test_values(name: str, text: str, setting: str, value: Any) -> None:
    assert config.parse({name: text})[setting] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LAZYNP_BACKEND", "cuda?"),
        ("LAZYNP_TIER", "fast"),
        ("LAZYNP_MEMORY", "0"),
        ("LAZYNP_MEMORY", "G"),
        ("LAZYNP_MEMORY", "1.5G"),
        ("LAZYNP_EAGER", "maybe"),
        ("LAZYNP_TAPE_LIMIT", "-1"),
        ("LAZYNP_TAPE_LIMIT", "all"),
        ("LAZYNP_DEBUG", "2"),
        ("LAZYNP_LIBMVEC", "avx3"),
        ("LAZYNP_CACHE", "off"),
        ("LAZYNP_THREADS", "0"),
        ("LAZYNP_THREADS", "-1"),
        ("LAZYNP_THREADS", "many"),
        ("LAZYNP_FALLBACK", "loud"),
    ],
)
def test_bad_values_are_named(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=name) as caught:
        config.parse({name: text})
    assert repr(text) in str(caught.value)


def test_override_is_undone_also_after_an_error() -> None:
    before, generation = (config.tier, config.eager), config.generation

    def fail() -> None:
        with config.override(tier="compiled", eager=True):
            assert (config.tier, config.eager) == ("compiled", True)
            assert config.generation > generation
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (config.tier, config.eager) == before


@pytest.mark.parametrize(("settings", "error"), [({"tier": "slow"}, ValueError), ({"threads": 0}, ValueError), ({"x": 1}, TypeError)])
def test_update_refuses(settings: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        config.update(**settings)
