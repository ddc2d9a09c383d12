"""Programs that differed once, as short as they could be made: found by the random ones, kept as a table."""

from __future__ import annotations

import pytest

from tests.differential.programs import difference
from tests.differential.writer import Program

FORTRAN = "v0 = np.array(numpy.arange(12).reshape(4, 3) % 5, 'i8', order='F')"
EMPTY = "v0 = np.zeros((3, 0, 4), 'i8')"

PROGRAMS: dict[str, list[str]] = {
    # Memory order
    "outer of arrays in Fortran order": [FORTRAN, "v1 = np.add.outer(v0, v0)", "v2 = np.add.outer(v0, 1)"],
    "where with a foreign condition": [FORTRAN, "v1 = np.where(numpy.ones((4, 3), bool), v0, 2)", "v1.ravel()[1:] += v1.ravel()[:-1]"],
    "a foreign operand in Fortran order": ["v0 = np.ones((2, 3))", "v1 = v0 + numpy.ones((2, 3), order='F')", "v2 = v1.T.ravel()"],
    "index arrays in Fortran order": [FORTRAN, "v1 = np.arange(9)", "v2 = v1[v0]", "v3 = v1[numpy.asfortranarray(v0 > 9).astype(int)]"],
    "index arrays in Fortran order, one element each": [
        FORTRAN, "v1 = np.ones((5, 1))", "v2 = v1[v0]", "v3 = v1[v0, 0]", "v4 = v0[v0 % 3, v0 % 2]",
    ],
    "index arrays in Fortran order, rows": [FORTRAN, "v1 = np.ones((5, 6))", "v2 = v1[v0]"],
    "joined broadcasts": ["v0 = np.broadcast_to(np.arange(6), (2, 6))", "v1 = np.vstack([v0, v0])", "v2 = np.stack([v0, v0], 2)"],
    "flat broadcasts": [FORTRAN, "v1 = np.broadcast_to(v0, (2, 4, 3))", "v2 = v1.ravel('K')", "v3 = v1.flatten('K')", "v4 = v1.copy('K')"],
    "a reduced empty array": ["v0 = np.ones((2, 3, 1), order='F')[:, ::-1, 1:]", "v1 = v0.sum(axis=-1)", "v2 = v0.sum(axis=0)"],
    "a reduced empty array, and a mask in Fortran order": [
        EMPTY, "v1 = np.ones((3, 1, 4), bool, order='F')", "v2 = np.min(v0, axis=1, where=v1, initial=1)",
    ],
    "a reduced empty view": ["v0 = np.arange(0, dtype='h').reshape((3, 0, 4))", "v1 = v0.transpose(1, 2, 0).prod(axis=-3)"],
    "counted broadcasts": ["v0 = np.broadcast_to(np.arange(10).reshape(5, 2), (2, 5, 2))", "v1 = np.count_nonzero(v0, axis=1)"],
    "a product's loop axes": [
        "v0 = np.ones((3, 2, 5, 4)).transpose(1, 2, 0, 3)", "v1 = v0 @ np.ones((4, 2))", "v2 = np.vecdot(v0, np.ones(4))",
    ],
    "segments of permuted arrays": [
        "v0 = np.ones((3, 4, 5)).transpose(1, 2, 0)", "v1 = np.maximum.reduceat(v0, [1, 0], axis=1)",
        "v2 = np.add.reduceat(v0, [1], axis=2)",
        "v3 = np.add.reduceat(v0.T, [1, 1], axis=0)",
    ],
    # Views
    "a view of a result in another order that is read-only": [
        FORTRAN, "v1 = np.where(v0 > 1, np.expand_dims(v0, 0), v0)", "v2 = np.rot90(np.flip(v1))", "v1.flags.writeable = False",
        "v2.flags.writeable = False", "try: v2.flags.writeable = True\nexcept ValueError: pass",
    ],
    "nothing to squeeze": ["v0 = np.ones((2, 3))", "v1 = v0.squeeze()", "v1[0] = 4", "v2 = np.squeeze(v0, axis=())"],
    "nothing to tile": [EMPTY, "v0.flags.writeable = False", "v1 = np.tile(v0, 2)"],
    # Values
    "reshape of a small part that is a copy": [
        "v0 = np.arange(48.0).reshape(6, 2, 4)[np.array([True] * 6)]",
        "v1 = np.array_split(v0[1:], 2, axis=2)[1].reshape((-1, 1))",
        "v1[...] = 1",
    ],
    "a number that no whole number holds": ["v0 = np.ones(3, '?')", "v1 = np.where(v0, v0, 10**20)", "v2 = np.ones(3)", "v3 = v2 + 1"],
    "complex numbers that are rounded, laid out as a copy": [
        "v0 = np.broadcast_to(np.arange(6.0).reshape(2, 3) * 1j, (4, 2, 3))", "v1 = np.round(v0)", "v2 = np.round(v0.T, 1)",
    ],
    "numbers in an outer product": ["v0 = np.ones(3, 'u4')", "v1 = np.power.outer(v0, 1)", "v2 = np.left_shift.outer(1, v0.astype('i4'))"],
    "a sum of nothing but -0.0": [
        "v0 = np.array(-0.0)", "v1 = np.sum(v0)", "v2 = np.sum(np.array([-0.0, 0.0]), axis=())", "v3 = np.add.reduce(v0, ())",
    ],
    "the bits that nothing has in common": [
        f"v{k} = np.bitwise_and.reduce(np.zeros((0, 3), {dtype!r}))" for k, dtype in enumerate(["u1", "u8", "i2", "?"])
    ],
    "the square of a truth value": [
        "v0 = (np.arange(3) > 1).any()", "v1 = v0 ** 2", "v2 = np.array([True]) ** 2", "v3 = np.array(True) ** 2",
    ],
    "an element of a constant": ["v0 = np.zeros((), 'F')", "v1 = v0 + 1", "v0[None][0] *= v1", "see(v0[None][0])"],
    "rounded in its memory order": [
        "v4 = np.broadcast_to(np.arange(7), (2, 7))", "v5 = np.round(v4)", "v6 = np.round(v4 / 3)",
        "v0 = np.ones((4, 3, 2, 5)).transpose(1, 0, 3, 2) / 3", "v1 = np.round(v0, 1)", "v2 = np.round(v0)",
        "v3 = np.round(v0.T.copy().T, 2)",
    ],
    "triangles and replaced values in Fortran order": [
        "v0 = np.ones((4, 3, 2), order='F')", "v1 = np.tril(v0)", "v2 = np.triu(v0.T)", "v3 = np.nan_to_num(v0)", "v4 = np.angle(v0)",
    ],
    "a mask takes a scalar as it is": [
        "v0 = np.zeros(3, 'i1')", "v1 = np.arange(300).sum()", "v0[v0 < 1] = v1", "v0[[0]] = v1", "v0[v0 < 50] = 300", "v0[v0 < 99] = nan",
    ],
    # Errors
    "a read-only output before its dtype": [
        "v0 = np.ones(3)", "v0.flags.writeable = False", "np.add(1j, 1, out=v0)", "np.copyto(v0, 1j)", "v1 = np.ones(1, 'u1')",
        "v1.flags.writeable = False", "np.copyto(v1, -1)",
    ],
    "copied onto itself, read-only": [
        "v0 = np.ones(3)", "v0.flags.writeable = False", "np.copyto(v0, v0)", "v0[...] = v0", "np.copyto(v0[:0], v0[:0])",
    ],
    "negative powers of nothing": [EMPTY, "v1 = v0 ** -1", "v2 = np.arange(3) ** -1"],
    "parts of nothing": [EMPTY, "v0.partition(0, 1)", "v1 = np.ones((0, 3))", "v1.partition(5)"],
    "the least of nothing": [
        "v0 = np.zeros((2, 0, 0))", "v1 = np.min(v0, axis=1)", "v2 = np.min(v0 > 0, axis=2)", "v3 = np.min(v0, axis=0)",
    ],
    "taken from nothing": [
        EMPTY, "v1 = np.take(v0, [0, 1], axis=1)", "v2 = np.take(v0[:0], [0, 1], axis=1)", "v3 = np.take(v0[:, :, :0], [0], axis=1)",
        "v4 = np.take(v0[:, :, :0], [0], axis=1, mode='clip')",
    ],
    "indices of nothing": ["v0 = np.ones((2, 3))", "v1 = v0[np.ix_([], [0, 99])]", "v2 = v0[[0], [99]]", "v3 = v0[:0, [99]]"],
    "numbers too large for an output": [
        "v0 = np.ones(3, bool)", "v0 |= 10**20", "v1 = np.ones(3)", "v1 |= 10**20", "v0 += 300", "v2 = np.ones(3, int)",
        "np.copysign(v2, 10**20, out=v2)",
    ],
    "numbers too large for a truth value": [
        "v0 = np.ones(3)", "v1 = np.logical_or(v0, 10**20)", "v2 = np.logical_and(v0 > 0, 300)", "v3 = np.logical_or(v0 > 0, 10**20)",
    ],
    "numbers copied": [
        "v0 = np.ones(3, 'u1')", "np.copyto(v0, 1j, casting='unsafe')", "np.copyto(v0, -1)", "np.copyto(v0, 300)", "np.copyto(v0, 2.5)",
        "np.copyto(v0, True)", "v1 = np.ones(3, 'c16')", "np.copyto(v1, 10**20)", "np.copyto(v1, np.float64(2), casting='no')",
    ],
    "scalars that do not fit": [
        "v0 = np.zeros(3, 'i1')", "v1 = np.arange(300).sum()", "v0[0] = v1", "v0[...] = v1", "v0.fill(v1)",
        "v2 = np.array([1.0, nan]).max()",
        "v0[:2] = v2", "v3 = np.full(2, 2**63, 'u8').max()", "v4 = np.zeros(3, 'i8')", "v4[1] = v3", "v4[:] = np.arange(4).sum()",
    ],
    "a rounded truth value": ["v0 = np.ones(3, bool)", "v1 = np.round(v0, 1)", "v2 = np.round(v0)", "v3 = np.round(v0, -1)"],
    "filled": [
        "v0 = np.zeros(3)", "v0.fill(np.ones(1))", "v0.fill([1])", "v0.fill(np.array(2))", "v0.flags.writeable = False", "v0.fill(1)",
    ],
    "a mask in another order": [
        "v0 = np.asfortranarray(np.arange(12).reshape(3, 4))",
        "v1 = np.all(np.broadcast_to(v0, (2, 3, 4)), axis=0, where=v0.T.reshape(3, 4) > 1)",
        "v2 = np.arange(12.0).reshape(1, 3, 4)",
        "v3 = np.sum(np.broadcast_to(v2, (2, 3, 4)), axis=2, where=v2.reshape(3, 1, 4).swapaxes(0, 1) > 3)",
        "v4 = np.mean(np.broadcast_to(v2, (2, 3, 4)), axis=2, where=np.ones((3, 2, 4), bool).swapaxes(0, 1))",
    ],
    "products of one number": [
        "v0 = np.zeros((1, 1))", "v1 = -np.ones((1, 1))", "v2 = np.dot(v0, v1)", "v3 = v0 @ v1", "v4 = np.dot(v0[0], v1)",
        "v5 = np.inner(v0, v1)", "v9 = np.inner(v0[None], v1)",
        "v6 = np.tensordot(v0, v1, 1)", "v7 = np.dot(v0[0], v1[0])", "v8 = np.dot(v0.astype('f2'), v1.astype('f2'))",
    ],
    "a number flipped": [
        "v0 = np.zeros(4, 'i1')", "v1 = np.flip(np.dot(np.arange(12), np.arange(12)))", "v0[::-1] = v1", "v2 = np.flip(np.array(2.0))",
    ],
    "a border that a library reads": [
        "v0 = np.array([2.0, 0.0, 2.0, 1.0])", "v1 = np.cumprod(np.pad(v0[v0 != 0] + 1, 2), axis=None)",
        "v2 = np.cumsum(np.pad(v0 * 2, 1).reshape(2, 3), axis=1)",
    ],
    "gathered from numbers in a row": [
        "v0 = np.arange(3.0)[::-1] + 1", "v1 = v0[0]", "v2 = np.concatenate([np.exp(v1 - k).reshape(1) for k in range(3)])",
        "v3 = v2[np.array([2, 0, 1])]", "v4 = np.take(np.stack([v1, v1 * 2, v1 - 3]), np.array([[2, 0], [1, 1]]))",
        "v5 = np.pad(v0[1:2], 2)[np.array([4, 2, 0])]",
    ],
    "nothing filled": [
        "v0 = np.zeros(3, 'i4')", "v0[np.zeros(3, bool)] = np.zeros(0, 'i4')", "v0[3:] = np.full(0, 2)",
        "v0[np.array([], int)] = np.ones((2, 0)).reshape(0)", "v1 = np.arange(0)", "v0[v1] = np.arange(0)", "v2 = np.arange(3)[3:] + v1",
    ],
    "a broadcast part of what is one number everywhere": [
        "v1 = np.full((1, 2000000), 2, 'f')", "v2 = v1[::-1, ::-2][0, ::80000]", "v3 = v2 / np.broadcast_to(v2, (2, 13))",
    ],
    "numbers among themselves": [
        "v0 = np.zeros(3)", "np.copysign(1, 10**20, out=v0)", "np.less(1, 10**20, out=v0)",
        "np.copysign(2, 10**20, out=v0, where=[False, True])",
        "v1 = np.copysign(1, -10**20, dtype='f8')", "np.sin(10**20, out=v0)", "np.add(1, 10**20, out=v0)",
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["auto", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_found(name: str, tier: str) -> None:
    # Seeds decide what else is run: eagerly, without reads.
    for seed in (0, 1):
        assert difference(Program(seed, "exact", PROGRAMS[name]), tier) is None
