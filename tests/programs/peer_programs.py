"""Small programs on which other array libraries went wrong, by family of mistake, for ``test_peers``.

Each sets ``result``; NumPy's answer is the right one, whatever is realized between two statements.
"""

from __future__ import annotations

from typing import Final

PROGRAMS: Final[dict[str, list[str]]] = {
    "a slice updated in place while the whole is read before and after": [
        "t = np.arange(6.0); before = t + 1; t[:3] *= 10; result = before, t, t + 1",
        "t = np.arange(6.0); u = t; t[:3] *= 10; u[3:] -= 1; result = t, u",
        "t = np.arange(6.0); v = t[1:4]; s = v.sum(); t[:3] *= 10; result = s, v, v.sum(), t",
        "t = np.arange(12.0).reshape(3, 4); c = t[:, 1]; t[1] += c[0]; c *= 2; result = t, c",
        "t = np.arange(6); t[::2] += t[1::2]; t[::-1][:2] *= 3; result = t",
        "t = np.arange(6.0); f = lambda a: a.__setitem__(slice(0, 2), a[2:4]) or a.copy(); result = f(t), f(t), t",
    ],
    "special values of functions that have a similar sister": [
        "x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5.5, -5.5]); a, b = x[:, None], x[None, :]\n"
        "result = np.fmin(a, b), np.fmax(a, b), np.minimum(a, b), np.maximum(a, b)",
        "x = np.array([0.0, -0.0, 3, -3, np.inf, -np.inf, np.nan, 5.5, -5.5]); a, b = x[:, None], x[None, :]\n"
        "result = np.fmod(a, b), np.remainder(a, b), a % b, a // b, np.floor_divide(a, b), np.divmod(a, b)",
        "x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan]); "
        "result = np.sign(x), np.copysign(2.0, x), np.signbit(x), np.negative(x)",
        "x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan]); a, b = x[:, None], x[None, :]; "
        "result = np.copysign(a, b), np.nextafter(a, b)",
        "x = np.array([[1.0, np.nan], [np.nan, -np.inf]]); result = np.nanmin(x), np.nanmax(x, axis=1), np.nansum(x), np.fmin.reduce(x)",
        "a = np.array([7, -7, 7, -7, 0]); b = np.array([3, 3, -3, -3, 5]); result = a % b, a // b, np.fmod(a, b), np.divmod(a, b), a % 4",
        "x = np.array([-128, -1, 0, 127], 'int8'); result = abs(x), -x, x * x, x + 1, x // -1, np.sign(x), np.square(x)",
        "x = np.array([0.5, 1.5, 2.5, -0.5, -1.5]); result = np.rint(x), np.round(x), np.trunc(x), np.floor(x), np.ceil(x), np.fix(x)",
    ],
    "masks in every shape": [
        "x = np.arange(6.0); result = x[x > 9], x[x >= 0], x[np.zeros(6, bool)]",
        "x = np.arange(6.0).reshape(2, 3); result = x[x > 2], x[np.array([True, False])], x[:, np.array([True, False, True])]",
        "x = np.arange(6.0).reshape(2, 3); result = x[True], x[False], x[:, True], x[None], x[...], x[True, None], x[..., True]",
        "x = np.arange(6.0).reshape(2, 3); result = x[np.array(True)], x[np.array([0, 1]), ..., True]",
        "x = np.array(3.0); result = x[True], x[False], x[...], x[()], x[None]",
        "x = np.arange(6.0); x[x > 9] = 1; x[x > 2] = -1; x[np.zeros(6, bool)] = [1]; result = x",
        "x = np.arange(6.0); m = x > 2; x[m] = x[m] * 2; x[m] += 1; result = x, x[~m]",
        "x = np.arange(6.0).reshape(2, 3); x[:, np.array([True, False, True])] = 7; x[np.array([True, False])] = [1, 2, 3]; result = x",
        "x = np.array(3.0); x[True] = 4; x[False] = 5; x[np.array(True)] = x + 1; result = x",
        "x = np.arange(4.0); x[np.array([True, False, True])] = 1; result = x",
        "x = np.arange(4.0); x[x > 1] = [1, 2, 3]; result = x",
        "x = np.zeros((0, 3)); x[x > 0] = 5; result = x[x > 0], x[:, np.zeros(3, bool)]",
        "x = np.arange(24).reshape(2, 3, 4); result = x[np.array([0, 1]), :, np.array([2, 3])], x[:, [0, 2], ...], x[[1], ..., 2:]",
    ],
    "duplicate indices": [
        "x = np.zeros(4); x[[0, 0, 1, 0]] = [1, 2, 3, 4]; result = x",
        "x = np.zeros(4); x[[0, 0, 1]] += 1; result = x",
        "x = np.zeros(4); np.add.at(x, [0, 0, 1], 1); np.multiply.at(x, [0, 0], 3); result = x",
        "x = np.zeros((3, 2)); i = np.array([0, 1, 0]); x[i] = np.arange(6.0).reshape(3, 2); np.add.at(x, (i, i % 2), 5); result = x",
        "x = np.zeros(3); np.maximum.at(x, [1, 1, 2], [3, 2, 9]); np.subtract.at(x, np.array([2, 2]), x[:2] + 1); result = x",
        "x = np.arange(5.0); i = np.array([4, 4, 0]); x[i] = x[i[::-1]]; result = x, x[i]",
        "h = np.zeros(3, int); np.add.at(h, np.array([0, 2, 2, 1, 2]), 1); result = h, np.bincount(np.array([0, 2, 2, 1, 2]))",
    ],
    "out=, where= and what they leave alone": [
        "x = np.arange(4.0); np.add(x, 1, out=x); np.multiply(x[1:], x[:-1], out=x[1:]); result = x",
        "x = np.arange(4.0); np.add(x, x[::-1], out=x); result = x",
        "x = np.arange(4.0); np.cumsum(x, out=x); result = x",
        "x = np.arange(9.0).reshape(3, 3); np.add(x, x.T, out=x); np.dot(x, x, out=np.empty((3, 3))); result = x",
        "x = np.arange(4.0); np.add(x, 0.5, out=np.zeros(4, int)); result = x",
        "x = np.arange(4.0); o = np.zeros(4, int); np.add(x, 0.5, out=o, casting='unsafe'); result = o",
        "x = np.arange(4.0); o = np.full(4, 9.0); r = np.sqrt(x, out=o, where=x > 1); result = r is o, o",
        "x = np.arange(4.0); o = np.full(4, 9.0); np.divide(1, x, out=o, where=x != 0); result = o",
        "x = np.arange(4.0); o = np.zeros(3); np.add(x, 1, out=o); result = o",
        "x = np.arange(4.0); np.exp(x, out=x[:, None]); result = x",
        "x = np.arange(6.0).reshape(2, 3); o = np.zeros(3); x.sum(0, out=o); x.max(0, out=o, initial=2); result = o",
        "x = np.arange(4.0); o = np.zeros(4, 'f4'); np.add(x, 1, out=o); result = o",
        "x = np.arange(4.0); o = np.zeros(4, 'f4'); np.add(x, 1, out=o, casting='safe'); result = o",
    ],
    "dtypes": [
        "x = np.asarray(np.array([1.1, 2.2])); result = x.dtype, x * 2, x * 2.0, x + np.float32(1), x.astype('f4') + 1.1",
        "result = [(np.ones(2, d) + 1).dtype for d in ('i1', 'u1', 'f2', 'f4', 'c8')], (np.ones(2, 'i8') + np.ones(2, 'f4')).dtype",
        "r"
        "esult = (np.ones(2, 'u8') + np.ones(2, 'i8')).dtype, (np.ones(2, 'u8') + 1).dtype, (np.ones(2, "
        "'i4') / 2).dtype, np.ones(2, 'i4') // 2",
        "x = np.array([250, 255], 'u1'); result = x + 10, x * 2, x + x, x - 255, -x, x << 1, ~x, x.sum(), x.mean()",
        "x = np.array([120], 'i1'); result = x + 10, x + np.int8(10), x + np.int16(10), x + 10.0",
        "x = np.array([1], 'u1'); x + 300",
        "x = np.array([2**63 - 1]); result = x + 1, x * 2, -x - 2, abs(-x - 1), x.sum(), x.astype('i4'), x.astype('f4')",
        "x = np.array([1, 2], 'f4'); s = x.sum(); result = s.dtype, (s + 1).dtype, (s * np.float64(1)).dtype, (x * s).dtype, (x * 1e300)",
        "x = np.arange(3, dtype='i4'); x += 1; x *= 2; result = x.dtype, x",
        "x = np.arange(3, dtype='i4'); x /= 2",
        "r"
        "esult = np.sum(np.ones(3, 'i1')).dtype, np.prod(np.ones(3, 'u2')).dtype, np.cumsum(np.ones(2, bool)).dtype, "
        "np.mean(np.ones(3, 'f2')).dtype",
    ],
    "bad indices leave everything as it was": [
        "x = np.arange(4.0); x[4]",
        "x = np.arange(4.0); x[-5]",
        "x = np.arange(4.0); x[[0, 4]]",
        "x = np.arange(4.0); x[np.array([0, -5])]",
        "x = np.arange(4.0); x[1.0]",
        "x = np.arange(4.0); x['a']",
        "x = np.arange(4.0); x[0, 0]",
        "x = np.arange(4.0).reshape(2, 2); x[:, [2]]",
        "x = np.arange(4.0); x[np.zeros(5, bool)]",
        "x = np.arange(4.0); x[4] = 1",
        "x = np.arange(4.0); x[[0, 7]] = 1",
        "x = np.arange(4.0); x[0:2] = [1, 2, 3]",
        "x = np.arange(4.0); np.take(x, [5])",
        "x = np.arange(4.0); np.add.at(x, [5], 1)",
        "x = np.arange(4.0); np.take_along_axis(x, np.array([9]), 0)",
        "x = np.arange(4.0); "
        "result = x[4:], x[-9:2], x[2:99], x[3:1], x[::-1], np.take(x, [5, -9], mode='clip'), np.take(x, [5], mode='wrap')",
    ],
    "empty, 0-d and length-one": [
        "x = np.zeros((0, 3)); result = x.sum(), x.sum(0), x.sum(1), x.prod(), x.mean(0).shape, np.concatenate([x, x]).shape, x.T @ x",
        "x = np.zeros(0); result = np.sort(x), np.cumsum(x), x[x > 0], np.unique(x), x + 1, np.dot(x, x), x.reshape(0, 5), np.diff(x)",
        "x = np.zeros(0); x.max()",
        "x = np.zeros((0, 3)); x.argmin(0)",
        "x = np.zeros((3, 0)); result = x.max(0), x.argmax(0)",
        "x = np.array(2.0); "
        "result = x + 1, x.sum(), x * x, np.exp(x), x.reshape(1), x[None], np.stack([x, x]), np.broadcast_to(x, (2, 2))",
        "x = np.array(2.0); x += 1; x[...] = x * 2; result = x, x.item(), x.ndim, x.T, np.sort(np.atleast_1d(x))",
        "x = np.ones((1, 3)); y = np.arange(3.0)[:, None]; "
        "result = x + y, x * y.T, np.broadcast_to(x, (2, 3)), x.squeeze(), (x + y).std(0)",
        "x = np.ones((2, 1, 3)); result = x.sum(1), x.mean(1), x.squeeze(1), np.concatenate([x, x], 1), x.max(1, keepdims=True), x.std(1)",
        "r"
        "esult = np.linspace(0, 1, 0), np.linspace(0, 1, 1), np.arange(0), np.eye(0), np.zeros(()), "
        "np.meshgrid(np.arange(0), np.arange(2))",
    ],
    "read-only arrays refuse at the statement": [
        "x = np.broadcast_to(np.arange(3.0), (2, 3)); x[0, 0] = 1",
        "x = np.broadcast_to(np.arange(3.0), (2, 3)); x += 1",
        "x = np.arange(3.0); x.flags.writeable = False; x[0] = 1",
        "x = np.arange(3.0); x.flags.writeable = False; x *= 2",
        "x = np.arange(3.0); x.flags.writeable = False; np.add(x, 1, out=x)",
        "x = np.arange(3.0); x.flags.writeable = False; x[1:][0] = 1",
        "x = np.arange(3.0); x.flags.writeable = False; x.sort()",
        "x = np.arange(3.0); x.flags.writeable = False; x.fill(0)",
        "x = np.arange(3.0); v = x[1:]; x.flags.writeable = False; v[0] = 9; y = x.copy(); y[0] = 5; result = x, y, v.flags.writeable",
        "x = np.arange(3.0).real.imag; x[0] = 1",
        "x = np.diagonal(np.eye(3)); x[0] = 5",
    ],
    "scalars in Python's hands": [
        "x = np.arange(5.0); s = x.sum(); result = round(s), round(x.mean() / 3, 2), f'{s:.3f}|{x[1]:>6}', '%d %5.2f' % (x[3], x[1])",
        "i = np.arange(5).sum() - 6; result = list(range(i)), [10, 11, 12, 13, 14][i], 'ab' * i, hash(i) == hash(int(i)), {i: 1}[int(i)]",
        "import math, json; x = np.arange(5.0); result = math.sqrt(x[4]), max([x[1], x[2]]), json.dumps(x.sum().item()), min(x.sum(), 3)",
        "import numbers; x = np.arange(5); "
        "result = isinstance(x[0], numbers.Integral), isinstance((x / 2)[0], numbers.Real), x[1].bit_count()",
        "s = np.arange(3.0).sum(); t = s; s += 1; result = s, t",
    ],
    "what raises in NumPy raises at the call": [
        "np.ones(3) + np.ones(4)",
        "np.ones((2, 3)) @ np.ones((2, 3))",
        "np.ones(3).reshape(2, 2)",
        "np.ones(3).sum(axis=1)",
        "np.concatenate([np.ones(3), np.ones((2, 2))])",
        "np.ones(3).astype('nonsense')",
        "np.linalg.inv(np.ones((2, 3)))",
        "np.ones(3).transpose(1, 0)",
        "np.stack([np.ones(2), np.ones(3)])",
        "np.ones(2, nonsense=3)",
        "np.sum(np.ones(3), nonsense=1)",
        "np.ones(3).nonsense()",
        "np.nonsense",
        "x = np.ones(3); x.shape = (2, 2)",
        "np.swapaxes(np.ones(3), 0, 1)",
        "bool(np.ones(3))",
        "if np.ones(2) > 0: pass",
        "float(np.ones(3))",
        "np.split(np.ones(5), 2)",
        "len(np.array(1.0))",
        "{np.ones(3): 1}",
    ],
}
