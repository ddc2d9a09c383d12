"""Programs that give arrays and results to what knows NumPy's alone, for ``test_swapped``: ``np`` is NumPy or lazynp.

Each is run with NumPy and with lazynp and leaves the same ``result``.  ``n`` is the number of elements, ``x`` floats, ``i`` integers, ``b``
a mask, ``m`` a matrix of eight columns; ``folder`` is an empty directory.
"""

PYTHON = {
    "json of an integer, as NumPy": (
        "import json\ntry:\n    result = json.dumps(i.sum())\nexcept TypeError as error:\n    result = str(error)"
    ),
    "json of tolist": "import json; result = json.dumps([m.tolist()[:2], x.sum().item(), float(x.max())])",
    "format": (
        "result = f'{x.sum():.3f} {x.max():>12.4e} {i.sum():08d} {x.mean():g} {m[0].sum()!r:>20}', '%.3f %d %s' % (x.sum(), "
        "i.max(), i.min())"
    ),
    "str": "result = str(x.sum()), repr(i.sum()), str(b.any()), repr(b.all()), '{:.2f}'.format(x.std())",
    "isinstance float": (
        "import numbers; "
        "result = [isinstance(x.sum(), t) for t in (float, int, np.float64, np.floating, np.generic, numbers.Real)]"
    ),
    "isinstance int": (
        "import numbers; "
        "result = [isinstance(i.sum(), t) for t in (float, int, np.int64, np.integer, np.generic, numbers.Integral)]"
    ),
    "type of an array": "result = type(x) is np.ndarray, isinstance(x, np.ndarray), issubclass(type(x), np.ndarray), type(x).__name__",
    "singledispatch": (
        "import functools\n@functools.singledispatch\ndef f(v):\n    return 'object'\n@f.register(float)\ndef _(v):\n"
        "    return 'float'\n@f.register(np.ndarray)\ndef _(v):\n    return 'array'\n@f.register(np.integer)\ndef _(v):\n"
        "    return 'integer'\nresult = f(x.sum()), f(x), f(i.sum()), f(b.any())"
    ),
    "match": "match x.sum():\n    case float():\n        result = 'float'\n    case _:\n        result = 'other'",
    "match an array": (
        "match [x.max(), i.sum(), x]:\n    case [float(v), np.integer(), np.ndarray() as y]:\n        result = v, y\n"
        "    case _:\n        result = 0"
    ),
    "match values": "match int(i.max()):\n    case 0:\n        result = 'zero'\n    case k if k > i.min():\n        result = 'more'",
    "fractions": "import fractions; result = fractions.Fraction(x.max()), fractions.Fraction(float(x.mean()))",
    "math": (
        "import math; "
        "result = math.sqrt(x.max()), math.floor(x.sum()), math.isnan(x.mean()), math.comb(int(i.max()), 2), math.hypot(x[0], x[1])"
    ),
    "statistics": "import statistics; result = statistics.mean(x[:20]), statistics.median(i[:20])",
    "random": "import random; random.seed(int(i.sum())); result = random.random(), random.Random(3).choices(x[:4], k=2)",
    "sum of elements": "result = sum(x[:10]), max(x[:10]), min(i[:9]), sorted(x[:5]), list(reversed(i[:5])), any(b), all(b[:2])",
    "range and indices": (
        "result = list(range(i.max()))[:3], [10, 20, 30, 40][i.min()], 'abc' * i.max(), bytes(int(i.max())), (1, 2, 3)[: i.max()]"
    ),
    "round": (
        "result = round(x.sum(), 2), round(x.mean()), divmod(x.max(), 0.3), abs(x.min()), pow(x.max(), 2), int(i.sum()), "
        "complex(x.sum())"
    ),
    "hash and keys": (
        "result = {x.max(): 1}[float(x.max())], {i.sum(): 2}[int(i.sum())], hash(x.max()) == hash(float(x.max())), x.max() "
        "in {x.max()}"
    ),
    "dict of results": "result = dict(zip(i[:5].tolist(), x[:5], strict=True)), {k: v.sum() for k, v in enumerate(m[:3])}",
    "bool": "result = bool(x.sum() > 0), not b.any(), 1 if x.max() > 0.5 else 2, x.sum() and 3, [k for k in range(3) if m[k].sum() < 0]",
    "array.array": (
        "import array; "
        "result = array.array('d', x[:20]), array.array('d', x.tobytes()).tolist()[:3], array.array('d', [x.sum().round(6)])"
    ),
    "array.array frombytes": "import array; a = array.array('d'); a.frombytes(x.tobytes()); result = a[:5].tolist(), len(a)",
    "array to array": (
        "import array; result = np.array(array.array('d', [1, 2, 3])) + x[:3], np.frombuffer(array.array('i', [1, 2]), 'i4')"
    ),
    "ctypes array": (
        "import ctypes; c = (ctypes.c_double * 4)(1, 2, 3, 4); y = np.ctypeslib.as_array(c); y[0] = 9; "
        "result = c[0], y, np.frombuffer(c) * 2"
    ),
    "numpy out": "y = np.zeros(n); numpy.add(x, 1, out=y); result = y",
    "numpy in place": "y = numpy.ones(n); y += x; y[:3] = x[:3]; y[b] = 0; result = y",
    "numpy.copyto, put, place": (
        "y = numpy.zeros(n); numpy.copyto(y, x); numpy.put(y, [0, 1], x[5:7]); numpy.place(y, b, [3.0]); result = y"
    ),
    "numpy puts into ours": (
        "y = x + 0; numpy.copyto(y, 1.5); numpy.put(y, [0, 1], 7); numpy.place(y, b, [3.0]); numpy.fill_diagonal(m, 4); "
        "result = y, m"
    ),
    "np.testing": (
        "np.testing.assert_almost_equal(x, x + 1e-12); np.testing.assert_array_less(x, x + 1)\ntry:\n"
        "    np.testing.assert_array_equal(x[:4], x[1:5])\n    result = 0\nexcept AssertionError as error:\n"
        "    result = str(error)"
    ),
    "pickle": "import pickle; result = pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps([x.sum(), m.T, b], protocol=2))",
    "pickle to NumPy": (
        "import pickle; "
        "result = pickle.loads(pickle.dumps(numpy.asarray(x))), pickle.loads(pickle.dumps(numpy.float64(3))), "
        "type(pickle.loads(pickle.dumps(x.sum())))"
    ),
    "pickle out of band": (
        "import pickle; k = []; d = pickle.dumps(x, protocol=5, buffer_callback=k.append); "
        "result = pickle.loads(d, buffers=k)"
    ),
    "pickle read by NumPy": (
        "import pickle, subprocess, sys\n(folder / 'p').write_bytes(pickle.dumps(numpy.asarray(x)))\n"
        "code = f'import pickle; print(type(pickle.load(open({str(folder / chr(112))!r}, chr(114) + chr(98)))))'\n"
        "result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout"
    ),
    "pickle written by NumPy": (
        "import pickle, subprocess, sys\n"
        "code = 'import pickle, sys, numpy as n; sys.stdout.buffer.write(pickle.dumps([n.arange(5.0), n.float64(3), n.arange(4)[::2]]))'\n"
        "y, s, z = pickle.loads(subprocess.run([sys.executable, '-c', code], capture_output=True, check=True).stdout)\n"
        "y[0] = 7; result = y + x[:5], s * x, z, np.sin(y)"
    ),
    "multiprocessing: spawn": (
        "import multiprocessing\nwith multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "    result = pool.map(abs, [x, m, x.sum()]), pool.map(sum, [x[:9], i[:3]]), pool.apply(max, (i,))"
    ),
    "copy": "import copy; y = copy.deepcopy({'a': x, 'b': [m, x.sum()]}); y['a'][0] = 9; z = copy.copy(x); z[1] = 8; result = y, z, x",
    "deepcopy of an object": (
        "import copy\nclass A:\n    pass\na = A(); a.x = x; a.y = x[:5]; c = copy.deepcopy(a); c.x[0] = 5\n"
        "result = a.x, c.x, c.y"
    ),
    "sqlite3": (
        "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table t (a real, b blob)')\n"
        "d.execute('insert into t values (?, ?)', (x.sum(), x[:4].tobytes()))\n"
        "d.execute('insert into t values (:a, :b)', {'a': x.max(), 'b': i.sum()})\n"
        "d.executemany('insert into t values (?, null)', [(v,) for v in x[:3]])\n"
        "result = [(round(a, 9), c) for a, c in d.execute('select * from t')]\nd.close()"
    ),
    "csv": (
        "import csv, io; f = io.StringIO(); csv.writer(f).writerows([x[:3], i[:3], [x.max(), i.sum(), b.any()]]); "
        "result = f.getvalue()"
    ),
    "print": "import io; f = io.StringIO(); print(x[:3], i.sum(), x.max(), b.any(), m[0], [x.min()], file=f); result = f.getvalue()",
    "print type": (
        "result = str(type(x)), repr(type(x)), str(type(x.sum())), type(x).__module__, type(x).__qualname__, np.ndarray.__module__"
    ),
    "logging": (
        "import logging; "
        "result = logging.LogRecord('a', 10, 'p', 1, 'sum %s %.2f %d', (x.max(), x.sum(), i.max()), None).getMessage()"
    ),
    "textwrap, str.join": (
        "result = ' '.join(map(str, x[:3])), ','.join(f'{v:.2f}' for v in x[:3]), ''.join(chr(97 + k) for k in i[:3] % 26)"
    ),
    "matrix": "a = np.matrix([[1.0, 2], [3, 4]]); result = a * x[:2].reshape(2, 1), a * 2, x[:2] * a, a @ a, a.T, (a * m[:2, :2]).sum()",
    "matrix of ours": (
        "result = np.matrix(m[:2, :2]) * m[:2, :2], np.asmatrix(m[:3]) * np.asmatrix(m[:3]).T, np.bmat([[m[:2, :2], m[:2, :2]]])"
    ),
    "setfield": "y = np.zeros(n, 'f8'); y.setfield(3, np.int32); y.setfield(x[:1].astype('f4'), 'f4', 4); result = y, x.getfield('i4')",
    "byteswap": "y = i.copy(); z = y.byteswap(inplace=True); result = y, z is y, x.byteswap()",
    "require": (
        "y = np.require(m.T, dtype='f4', requirements=['C', 'A', 'O', 'W']); y[0] = 3; "
        "result = y, y.flags.c_contiguous, np.require(x, None, 'F') is x"
    ),
    "setflags": (
        "y = x.copy(); y.setflags(write=False)\ntry:\n    y[0] = 1\n    result = 0\nexcept ValueError as error:\n"
        "    result = str(error), y.flags.writeable"
    ),
    "resize": "y = x.copy(); y.resize(n + 3, refcheck=False); result = y",
    "shape set": "y = x.copy()[: n // 2 * 2]; y.shape = (2, n // 2); result = y",
    "dtype view": "y = x.copy(); y.view('u8')[0] = 0; y.view(np.uint8)[8:16] = 0; result = y, y.view([('a', 'f4'), ('b', 'f4')])['b']",
    "recarray": (
        "y = np.rec.fromarrays([x, i], names='a,b'); y.a[0] = 7; "
        "result = y.a, y.b.sum(), y[0].a, np.rec.array([(1, 2.0)], dtype=[('p', 'i4'), ('q', 'f8')]).q"
    ),
    "vars copied": (
        "import types; a = types.ModuleType('mine'); a.__dict__.update(vars(np)); import importlib; "
        "result = a.sin(x), importlib.import_module(np.__name__ + '.linalg').norm(x)"
    ),
    "module attributes": (
        "result = [hasattr(np, k) for k in ('__path__', '__file__', '__version__', '__all__', '__spec__', '__nothing__')], "
        "np.__version__"
    ),
    "inspect": (
        "import inspect; "
        "result = inspect.ismodule(np), callable(np.sum), inspect.isclass(np.ndarray), 'axis' in inspect.signature(np.sum).parameters"
    ),
    "warnings": (
        "import warnings\nwith warnings.catch_warnings(record=True) as w:\n    warnings.simplefilter('always')\n"
        "    y = np.log(x - 5).sum()\n    str(y)\nresult = [(str(v.message), v.category) for v in w]"
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as p:\n"
        "    result = list(p.map(lambda k: (x * k).sum(), range(6)))"
    ),
    "weakref": "import weakref, gc; y = x + 1; r = weakref.ref(y); k = r() is y; del y; gc.collect(); result = k, r() is None",
    "dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: np.ndarray\n    y: float = 0.0\np = P(x, x.sum())\n"
        "result = dataclasses.asdict(p), p.y"
    ),
    "enum": "import enum\nclass E(enum.IntEnum):\n    A = 1\nresult = E(i.min()) if i.min() == 1 else E(1), x[E.A], np.array([E.A, 2])",
    "heapq, bisect": "import bisect, heapq; result = heapq.nlargest(3, x), bisect.bisect(x, 0.1), bisect.bisect_left(i.tolist(), i.max())",
    "itertools": (
        "import itertools; "
        "result = list(itertools.accumulate(x[:5])), list(itertools.chain(x[:2], i[:2])), list(itertools.product(i[:2], repeat=2))"
    ),
    "functools.reduce": (
        "import functools, operator; "
        "result = functools.reduce(operator.add, [x, x, i]), functools.reduce(np.logical_and, [b, b]), operator.index(i.max())"
    ),
    "collections": (
        "import collections; "
        "result = collections.Counter(i[:9].tolist()), collections.Counter(i[:9]).most_common(1), collections.deque(x[:3], 2)"
    ),
    "ast, eval": "import ast; result = ast.literal_eval(str(x[:3].tolist())), eval(repr(float(x.sum()))), eval('x.sum() + 1')",
    "random of numbers": (
        "r = np.random.default_rng(3); "
        "result = r.normal(x.max(), 1, 3), r.choice(x, 3), r.integers(0, i.max(), 3), r.permutation(i)[:3]"
    ),
    "deprecated random": "np.random.seed(int(i.max())); result = np.random.rand(3), np.random.randint(0, 9, 3), np.random.choice(i, 2)",
    "shuffle": "y = x.copy(); r = np.random.default_rng(5); r.shuffle(y); z = m.copy(); r.shuffle(z, axis=1); result = y, z",
    "savetxt": (
        "np.savetxt(folder / 't', m[:5]); np.save(folder / 'a.npy', x); np.savez(folder / 'z', x=x, m=m)\n"
        "z = np.load(folder / 'z.npz')\nresult = np.loadtxt(folder / 't'), np.load(folder / 'a.npy'), z['m'], sorted(z)"
    ),
    "memmap": (
        "y = np.memmap(folder / 'm', float, 'w+', shape=(n,)); y[:] = x; y[0] = 3; y.flush(); "
        "result = np.fromfile(folder / 'm'), (y + 1).sum(), np.memmap(folder / 'm', float, 'r')[:3]"
    ),
    "mmap_mode": (
        "np.save(folder / 'a.npy', x); y = np.load(folder / 'a.npy', mmap_mode='r'); "
        "result = y.sum(), (y * x)[:5], isinstance(y, np.memmap)"
    ),
    "ndenumerate": "result = list(np.ndenumerate(m[:2, :2])), list(np.ndindex(2, 2)), [v.sum() for v in m[:3]], np.nditer(m[:2]).shape",
    "nditer writes": (
        "y = x[:9].copy()\nwith np.nditer(y, op_flags=['readwrite']) as it:\n    for v in it:\n        v[...] = v * 2\n"
        "result = y"
    ),
    "flat": "y = m.copy(); y.flat[3] = 9; y.flat[::5] = 1; result = y, list(y.flat)[:4], y.flat[2:4]",
    "vectorize": (
        "f = np.vectorize(lambda p, q: p if p > q else q); "
        "result = f(x[:30], x[:30][::-1]), np.frompyfunc(lambda p: p + 1, 1, 1)(i[:3])"
    ),
    "object arrays": (
        "y = np.empty(3, object); y[0] = x; y[1] = x.sum(); y[2] = 'a'; "
        "result = y[0], y[1], np.array([x[:2], i[:2]], dtype=object)"
    ),
    "strings": (
        "result = np.array(['a', 'bc'])[i[:2] % 2], np.char.add('v', i[:3].astype(str)), x[:3].astype(str), "
        "np.array2string(x[:5], precision=2)"
    ),
    "dates": "d = np.datetime64('2020-01-01') + i[:4].astype('m8[D]'); result = d, d.max() - d.min(), (d - d[0]) / np.timedelta64(1, 'h')",
    "contextlib errstate": "with np.errstate(all='ignore'):\n    y = 1 / (x - x[3])\nresult = np.isinf(y).sum(), np.nan_to_num(y)[3]",
    "exceptions": (
        "result = []\n"
        "for f in (lambda: x + x[:-1], lambda: m @ m, lambda: x[n], lambda: x.reshape(3, -7), lambda: float(x)):\n    try:\n"
        "        f()\n    except Exception as error:\n        result.append((type(error).__name__, str(error)))"
    ),
    "hashlib": (
        "import hashlib; "
        "result = hashlib.sha256(x).hexdigest(), hashlib.md5(i.astype('i4')).hexdigest(), hashlib.sha1(m.T.copy()).hexdigest()"
    ),
    "hashlib update": "import hashlib; h = hashlib.sha256(); h.update(x); h.update(m[1:].copy()); result = h.hexdigest()",
    "zlib": "import zlib; result = zlib.crc32(x), zlib.adler32(i), zlib.decompress(zlib.compress(x)) == x.tobytes()",
    "bz2, lzma": (
        "import bz2, lzma; "
        "result = bz2.decompress(bz2.compress(i)) == i.tobytes(), lzma.decompress(lzma.compress(b)) == b.tobytes()"
    ),
    "base64": "import base64, binascii; result = base64.b64encode(i)[:40], binascii.hexlify(x[:4]), binascii.crc32(x)",
    "file.write": (
        "with open(folder / 'f', 'wb') as f:\n    k = f.write(x), f.write(m[:2])\n"
        "result = k, (folder / 'f').read_bytes() == x.tobytes() + m[:2].tobytes()"
    ),
    "write_bytes": "(folder / 'f').write_bytes(x); result = np.fromfile(folder / 'f')",
    "BytesIO": "import io; f = io.BytesIO(); f.write(i); result = f.getvalue() == i.tobytes(), io.BytesIO(x).read(16)",
    "readinto": (
        "(folder / 'f').write_bytes(bytes(range(256)) * (n // 32 + 1))\ny = np.empty(n)\n"
        "with open(folder / 'f', 'rb') as f:\n    k = f.readinto(y)\n"
        "result = k, y.view('u1')[:300], float((y.view('u1') > 9).sum())"
    ),
    "readinto what was computed": (
        "(folder / 'f').write_bytes(bytes(n * 8))\ny = x * 2\nwith open(folder / 'f', 'rb') as f:\n    f.readinto(y)\n"
        "result = y"
    ),
    "struct": (
        "import struct; "
        "result = struct.pack('<3d', *x[:3]), struct.pack('<dq', x.sum().round(6), i.sum()), struct.unpack_from('<2d', x, 8)"
    ),
    "struct pack_into": "import struct; struct.pack_into('<2d', x, 8, 1.5, 2.5); result = x",
    "bytes": (
        "result = bytes(x[:4].tobytes()), bytearray(i.tobytes())[:9], bytes(memoryview(x))[:16], memoryview(m).shape, "
        "memoryview(i).tolist()[:3]"
    ),
    "memoryview writes": "v = memoryview(x); v[1] = 7.5; result = x, v.format, v.nbytes, v.readonly",
    "memoryview of a part": "v = memoryview(m[:, 1]); v[0] = 3.0; result = m[0], v.strides, v.contiguous",
    "memoryview cast": "v = memoryview(x).cast('B'); v[:8] = bytes(8); result = x",
    "socket": (
        "import socket, threading\none, other = socket.socketpair()\nother.settimeout(5)\n"
        "t = threading.Thread(target=one.sendall, args=(x,))\nt.start()\nk = b''\nwhile len(k) < n * 8:\n"
        "    k += other.recv(65536)\nt.join(); one.close(); other.close()\nresult = np.frombuffer(k)"
    ),
    "socket recv_into": (
        "import socket\none, other = socket.socketpair()\none.sendall(bytes(64))\nother.recv_into(x, 64)\n"
        "one.close(); other.close()\nresult = x"
    ),
    "os.write": "import os\nr, w = os.pipe()\nos.write(w, x[:9])\nos.close(w)\nresult = np.frombuffer(os.read(r, 100))\nos.close(r)",
    "mmap": (
        "import mmap\nwith mmap.mmap(-1, n * 8) as f:\n    f[:] = memoryview(x).cast('B')\n    y = np.frombuffer(f)\n"
        "    result = y.sum(), (y * 2).max()\n    del y"
    ),
    "shared_memory": (
        "from multiprocessing import shared_memory as sm\ns = sm.SharedMemory(create=True, size=n * 8)\n"
        "y = np.ndarray((n,), float, buffer=s.buf)\ny[:] = x\nz = np.ndarray((n,), float, buffer=s.buf)\nz[0] = 5\n"
        "result = y[:3].copy(), (y + z).copy()\ndel y, z\ns.close(); s.unlink()"
    ),
    "ctypes": (
        "import ctypes; "
        "result = x.ctypes.shape[0], x.ctypes.strides[0], ctypes.string_at(x.ctypes.data, 16), "
        "x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[2]"
    ),
    "ctypes, a C library writes": "import ctypes; y = x + 1; ctypes.memset(y.ctypes.data, 0, 16); result = y, y.sum()",
    "ctypes, a C library reads": (
        "import ctypes; y, z = np.empty(n), x * 2; ctypes.memmove(y.ctypes.data, z.ctypes.data, n * 8); result = y"
    ),
    "ctypes, a C function": (
        "import ctypes\n"
        "cmp = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double))\n"
        "y = x[::-1][:60].copy()\n"
        "ctypes.CDLL(None).qsort(y.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(60), ctypes.c_size_t(8), cmp(lambda p, "
        "q: (p[0] > q[0]) - (p[0] < q[0])))\n"
        "result = y"
    ),
    "ndpointer": (
        "import ctypes\nd = np.ctypeslib.ndpointer(dtype=np.float64, ndim=1, flags='C_CONTIGUOUS')\n"
        "f = ctypes.CDLL(None).memcpy\nf.argtypes = [d, d, ctypes.c_size_t]\nf.restype = ctypes.c_void_p\ny = np.zeros(n)\n"
        "f(y, x, n * 8)\nresult = y"
    ),
    "ndpointer refuses": (
        "import ctypes\nd = np.ctypeslib.ndpointer(dtype=np.float64, ndim=1)\nresult = []\nfor bad in (i, m):\n    try:\n"
        "        d.from_param(bad)\n    except TypeError as error:\n        result.append(str(error))"
    ),
    "array interface": "y = x.__array_interface__; result = y['shape'], y['typestr'], y['strides'], y['version'], y['data'][1]",
    "array struct": (
        "result = type(x.__array_struct__).__name__, numpy.array(type('A', (), {'__array_interface__': x.__array_interface__})())"
    ),
    "numpy.asarray writes": "y = numpy.asarray(x); y[0] = 42; result = x, y, y.flags.writeable",
    "numpy.asarray of what was computed": (
        "y = x * 2 + 1; z = y + 1; k = numpy.asarray(y); k[1] = 42; y[2] = 43; "
        "result = y, k, z, numpy.shares_memory(numpy.asarray(y), k)"
    ),
    "sqlite3: blobs": (
        "import sqlite3; d = sqlite3.connect(':memory:'); "
        "result = d.execute('select ?, ?', (x[:2], memoryview(x[:2]))).fetchall(); d.close()"
    ),
    "subclass view": (
        "class A(np.ndarray):\n    pass\n"
        "y = np.zeros(n).view(A); y[0] = 4; z = x.view(A); z[1] = 9; result = type(y) is A, y, x, z.sum(), type(z[1:]) is A"
    ),
    "subclass with attributes": (
        "class A(np.ndarray):\n    def __new__(cls, v, info=None):\n"
        "        o = np.asarray(v).view(cls); o.info = info; return o\n    def __array_finalize__(self, o):\n"
        "        self.info = getattr(o, 'info', None)\n"
        "y = A(x, 'k'); y[0] = 3; y += 1; result = y.info, y[1:].info, (y * 2).info, y, x"
    ),
    "tracked array": (
        "class T(np.ndarray):\n    def __array_finalize__(self, o):\n        self.dirty = True\n"
        "    def __setitem__(self, *a):\n        self.dirty = True; super().__setitem__(*a)\n    def __iadd__(self, o):\n"
        "        return super().__iadd__(o)\n"
        "y = np.ascontiguousarray(np.zeros((n, 3))).view(type=T); y.dirty = False; y[0] = 1; y += 2; result = y.dirty, y.sum(), y"
    ),
    "masked": "y = np.ma.masked_array(x, mask=b); y[0] = 5; result = y.sum(), y.filled(0), np.ma.masked_less(x, 0).mean(), y.mask",
}

LIBRARIES = {
    "pandas: index": (
        "import pandas as pd; d = pd.DataFrame(m, index=i[: len(m)], columns=list('abcdefgh')); "
        "result = d.sum(), d.index.max(), pd.cut(x, 4).codes, pd.Index(x).get_indexer(x[:3])"
    ),
    "pandas: values": (
        "import pandas as pd; d = pd.DataFrame(m); "
        "result = np.sin(d.values).sum(), np.asarray(d[0]) + 1, np.where(d[1] > 0, d[1], x[: len(d)]), np.corrcoef(d.values.T)"
    ),
    "pandas: csv": (
        "import io; import pandas as pd; f = io.StringIO(); pd.DataFrame({'a': x[:9].round(6), 'b': i[:9]}).to_csv(f); "
        "result = f.getvalue()"
    ),
    "pandas: clip, merge": (
        "import pandas as pd; d = pd.DataFrame({'k': i, 'x': x}); "
        "result = d.x.clip(x.min(), x.mean()).sum(), pd.merge(d[:5], pd.DataFrame({'k': i[:5]}), on='k'), d.x.isin(x[:3]).sum()"
    ),
    "scipy: integrate": (
        "import scipy.integrate as s; "
        "result = s.quad(lambda t: np.exp(-t * t), 0, 2)[0], s.trapezoid(x, dx=0.1), s.solve_ivp(lambda t, y: -y, (0, 1), x[:3]).y"
    ),
    "scipy: optimize": (
        "import scipy.optimize as s; r = s.minimize(lambda p: ((p - x[:3]) ** 2).sum(), np.zeros(3)); "
        "result = np.round(r.x, 4), s.brentq(lambda t: np.cos(t) - t, 0, 1), s.curve_fit(lambda t, a, c: a * t + c, x, x * 2 "
        "+ 1)[0].round(6)"
    ),
    "scipy: least squares": (
        "import scipy.optimize as s; "
        "result = np.round(s.least_squares(lambda p: p[0] * x + p[1] - x * 3, [1.0, 1.0]).x, 5), s.linear_sum_assignment(m[:8])[1]"
    ),
    "scipy: sparse": (
        "import scipy.sparse as sp; a = sp.csr_matrix(m[:8] * (m[:8] > 0)); "
        "result = a @ x[:8], (a @ m[:8]).sum(), a.multiply(m[:8]).sum(), a.toarray(), sp.coo_matrix((x[:3], (i[:3], i[:3])), "
        "shape=(99, 99)).sum()"
    ),
    "scipy: sparse solvers": (
        "import scipy.sparse as sp, scipy.sparse.linalg as sl; a = sp.diags([np.full(50, 4.0), np.ones(49), np.ones(49)], "
        "[0, 1, -1], format='csr')\n"
        "result = sl.cg(a, x[:50], rtol=1e-12)[0], sl.gmres(a, x[:50], rtol=1e-12)[0], np.sort(sl.eigsh(a, 3, "
        "v0=np.ones(50))[0]).round(8), sl.norm(a)"
    ),
    "scipy: signal": (
        "import scipy.signal as s; b_, a_ = s.butter(3, 0.2); "
        "result = s.lfilter(b_, a_, x), s.filtfilt(b_, a_, x), s.find_peaks(np.sin(x * 30))[0], s.convolve(x, x[:9], "
        "'same'), s.medfilt(x[:50], 3)"
    ),
    "scipy: interpolate": (
        "import scipy.interpolate as s; k = np.linspace(0, 1, 20); f = s.interp1d(k, np.sin(k)); "
        "result = f(abs(x) / 2), s.CubicSpline(k, np.cos(k))(abs(x)), s.UnivariateSpline(k, k * 2, s=0)(0.3), "
        "s.griddata(m[:9, :2], x[:9], m[1:3, :2], 'nearest')"
    ),
    "scipy: spatial": (
        "import scipy.spatial as s; t = s.cKDTree(m[:40, :3]); "
        "result = t.query(m[:5, :3])[1], s.distance.cdist(m[:5], m[5:9]), s.distance.pdist(m[:5]), "
        "s.ConvexHull(np.array([[0.0, 0], [1, 0], [0, 1], [0.1, 0.1]])).area"
    ),
    "scipy: stats": (
        "import scipy.stats as s; "
        "result = s.norm.cdf(x), s.pearsonr(x, x**2)[0], s.linregress(x, x * 2).slope, s.ttest_ind(x, x + 0.1).pvalue, "
        "s.describe(x).mean, s.rankdata(i)[:5]"
    ),
    "scipy: linalg": (
        "import scipy.linalg as s; a = m[:8] + np.eye(8) * 9; "
        "result = s.lu_solve(s.lu_factor(a), x[:8]), s.expm(m[:8] / 9), s.solve(a, x[:8]), abs(s.eigvals(a)).max(), "
        "s.cholesky(a @ a.T)"
    ),
    "scipy: special": (
        "import scipy.special as s; "
        "result = s.erf(x), s.gamma(i % 5 + 1), s.logsumexp(x), s.softmax(x)[:5], s.expit(x), s.comb(int(i.max()), 2)"
    ),
    "scipy: fft": "import scipy.fft as s; result = abs(s.fft(x))[:9], s.irfft(s.rfft(x), n), s.dct(x)[:9], s.fftfreq(n)[:3]",
    "scipy: io": "import scipy.io as s; s.savemat(folder / 'a.mat', {'x': x, 'm': m}); result = s.loadmat(folder / 'a.mat')['m']",
    "scipy: wav": (
        "import scipy.io.wavfile as s; s.write(folder / 'a.wav', 8000, (x * 9999).astype('i2')); "
        "result = s.read(folder / 'a.wav')[1]"
    ),
    "scipy: cluster": (
        "import scipy.cluster.vq as s, scipy.cluster.hierarchy as h; "
        "result = s.vq(m[:50], m[:3])[0], h.linkage(m[:9]), h.fcluster(h.linkage(m[:9]), 2, 'maxclust')"
    ),
    "sklearn": (
        "from sklearn.linear_model import LinearRegression as L; from sklearn.preprocessing import StandardScaler as S; "
        "k = m[:300]; f = L().fit(k, k[:, 0] * 2); result = f.predict(k).round(9), f.coef_.round(9), S().fit_transform(k)"
    ),
    "sklearn: trees": (
        "from sklearn.ensemble import RandomForestClassifier as R; from sklearn.metrics import accuracy_score as A; "
        "k = m[:200]; y = (k[:, 0] > 0).astype(int); f = R(5, random_state=0).fit(k, y); "
        "result = f.predict(k), A(y, f.predict(k)), f.predict_proba(k)"
    ),
    "sklearn: split": (
        "from sklearn.model_selection import train_test_split as t, KFold; p, q = t(m[:100], random_state=0); "
        "result = p, q, [k[1].sum() for k in KFold(3).split(m[:100])]"
    ),
    "joblib": (
        "import joblib; "
        "result = joblib.hash(x.tolist()), joblib.Parallel(2, backend='threading')(joblib.delayed(np.sum)(v) for v in m[:4])"
    ),
    "joblib: dump": (
        "import joblib; joblib.dump({'x': x, 's': x.max()}, folder / 'j'); k = joblib.load(folder / 'j'); "
        "result = k['x'], k['s']"
    ),
    "joblib: memory": "import joblib\nf = joblib.Memory(folder, verbose=0).cache(numpy.sum)\nresult = f(x), f(x)",
    "joblib: processes": "import joblib; result = joblib.Parallel(2)(joblib.delayed(numpy.sum)(v) for v in (x, x * 2))",
    "PIL": (
        "from PIL import Image; y = (m * 99 + 100).astype('u1'); k = Image.fromarray(y); "
        "result = k.size, np.asarray(k), np.array(k.resize((4, 4))).shape, Image.fromarray(np.dstack([y] * 3)).getpixel((0, 0))"
    ),
    "PIL: file": (
        "from PIL import Image; y = (m * 99 + 100).astype(np.uint8); Image.fromarray(y).save(folder / 'a.png'); "
        "result = np.array(Image.open(folder / 'a.png')), np.asarray(Image.open(folder / 'a.png')) / 255.0"
    ),
    "matplotlib": (
        "import matplotlib.pyplot as plt; f, a = plt.subplots(); (l,) = a.plot(x, x**2); a.hist(x, 5); "
        "a.set_xlim(x.min(), x.max()); a.imshow(m[:8]); f.canvas.draw(); "
        "result = l.get_xdata(), l.get_ydata(), a.get_ylim(); plt.close(f)"
    ),
    "matplotlib: more": (
        "import matplotlib.pyplot as plt; f, a = plt.subplots(); a.scatter(x[:30], x[:30], c=x[:30], s=i[:30]); "
        "a.contourf(m[:8]); a.errorbar(x[:5], x[:5], yerr=abs(x[:5])); a.fill_between(x[:9], x[:9], 0, where=b[:9]); "
        "a.bar(i[:3], x[:3]); a.text(x.max(), x.min(), f'{x.sum():.2f}'); f.canvas.draw(); result = a.get_xlim(); "
        "plt.close(f)"
    ),
    "xarray": (
        "import xarray as xr; d = xr.DataArray(m, dims=('p', 'q')); "
        "result = d.mean('p').values, d.sel(q=3).values, (d + d.q).values, d.where(d > 0).sum().item(), d.isel(p=i[:3] % 3).values"
    ),
    "networkx": (
        "import networkx as nx; y = (abs(m[:8]) > 0.3).astype(int); g = nx.from_numpy_array(y | y.T); "
        "result = sorted(g.edges), nx.to_numpy_array(g), nx.pagerank(g), sorted(nx.shortest_path_length(g, 0).items())"
    ),
    "networkx: weights": (
        "import networkx as nx; g = nx.Graph(); "
        "g.add_weighted_edges_from((int(p), int(q), w) for p, q, w in zip(i[:9], i[1:10], abs(x[:9]), strict=True)); "
        "result = nx.minimum_spanning_tree(g).size(weight='weight')"
    ),
    "sympy: lambdify": (
        "import sympy; s, t = sympy.symbols('s t'); f = sympy.lambdify((s, t), sympy.sin(s) * t + s**2, 'numpy'); "
        "result = f(x, x), f(x.sum(), 1.0), sympy.lambdify(s, sympy.Piecewise((s, s > 0), (0, True)))(x)"
    ),
    "sympy: numbers": (
        "import sympy; "
        "result = sympy.Float(x.max()), sympy.Integer(int(i.sum())), sympy.sympify(x.max()), sympy.Matrix(m[:2, :2]).shape, "
        "sympy.symbols('s') * x.max(), np.array(sympy.Matrix([[1, 2]])).astype(float)"
    ),
    "numba: vectorize": "import numba\n@numba.vectorize(['f8(f8, f8)'])\ndef f(p, q):\n    return p * 2 + q\nresult = f(x, x), f(x, 1.0)",
    "h5py": (
        "import h5py\nwith h5py.File(folder / 'f', 'w') as f:\n    d = f.create_dataset('x', data=x); f['m'] = m; "
        "f.attrs['s'] = x.max(); f.attrs['v'] = i[:3]\n    d[:3] = x[3:6]; e = f.create_dataset('e', shape=m.shape, dtype='f4')\n"
        "    e[...] = m; e[:, 1] = m[:, 2]; f.create_dataset('c', data=m, chunks=True, compression='gzip')\n"
        "    result = d[:], f['m'][2:4], f.attrs['s'], f.attrs['v'], e[:], f['c'][:, 0], np.sum(d), np.asarray(e) + 1"
    ),
    "pyarrow": (
        "import pyarrow as pa, pyarrow.parquet as pq; t = pa.table({'x': x, 'i': i, 'b': b}); pq.write_table(t, folder / 'p'); "
        "k = pq.read_table(folder / 'p'); "
        "result = k['x'].to_numpy(), k['b'].to_pylist()[:3], pa.array(i).type == pa.int64(), pa.array(m[:, 1]).to_numpy(), "
        "pa.py_buffer(x).size, pa.scalar(x[3]).as_py(), np.asarray(pa.array(x)) + 1"
    ),
    "numexpr": (
        "import numexpr as ne; y = abs(x) + 1; s = x.max(); "
        "result = ne.evaluate('x * 2 + y'), ne.evaluate('sum(y)'), ne.evaluate('where(b, x, y)'), ne.evaluate('y ** 2 + s')"
    ),
    "zarr": (
        "import zarr; z = zarr.create_array(store=str(folder / 'z'), shape=m.shape, chunks=(16, 8), dtype='f8'); z[:] = m; "
        "z[0] = x[:8]; result = z[:], z[2:5, 1], z.shape"
    ),
    "trimesh": (
        "import trimesh; "
        "k = trimesh.Trimesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), np.array([[0, 2, 1], [0, 1, 3], [0, "
        "3, 2], [1, 2, 3]])); "
        "k.apply_translation(x[:3]); result = k.volume, k.area, k.bounds, k.is_watertight"
    ),
    "IPython": "from IPython.lib.pretty import pretty; result = pretty(x[:5]), pretty([x.max(), i.sum()])",
    "rich": "import io; from rich.console import Console; f = io.StringIO(); Console(file=f).print(x[:3], x.max()); result = f.getvalue()",
    "hypothesis": (
        "import hypothesis.extra.numpy as h; "
        "result = h.from_dtype(x.dtype) is not None, h.broadcastable_shapes(m.shape) is not None"
    ),
    "cloudpickle": (
        "import cloudpickle, pickle; k = x[:4]; f = pickle.loads(cloudpickle.dumps(lambda t: (t + k).sum())); "
        "result = f(x[:4])"
    ),
    "array_api_compat": (
        "import array_api_compat as c; "
        "result = c.is_array_api_obj(x), c.size(x), c.device(x), c.array_namespace(x).__name__.split('.')[-1] in ('numpy', "
        "'lazynp', 'standard')"
    ),
    "scipy: sosfilt": (
        "import scipy.signal as s; k = s.butter(4, 0.2, output='sos'); "
        "result = s.sosfilt(k, x), s.sosfiltfilt(k, x), s.sosfilt(np.array(k), x * 2)"
    ),
    "scipy: ndimage": (
        "import scipy.ndimage as s; y = m.copy(); s.gaussian_filter(y, 2, output=y); "
        "result = s.gaussian_filter(m, 1), s.label(m > 0)[1], y, s.zoom(m[:8], 2), s.map_coordinates(m, [[0.5, 1.5], [0.5, 1.5]])"
    ),
    "sklearn: clusters": (
        "from sklearn.cluster import KMeans as K, DBSCAN as D; k = m[:100]; "
        "result = K(3, n_init=1, random_state=0).fit(k).labels_, D(0.5).fit_predict(k)"
    ),
}

# A program whose functions Numba compiles, for ``python`` and ``python -m lazynp``; ``N`` is a number.
COMPILED = """
import numpy as np
import numba
from numba import njit, vectorize, guvectorize
from numpy import sqrt as root

TABLE = np.arange(5.0)


@njit
def norm(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.sqrt(x[i] * x[i]) + root(y) + TABLE[i % 5]
    return total


def scaled(factors):
    @njit
    def inner(x):
        return np.sin(x) * factors[0] + np.linalg.norm(factors)

    return inner


@njit("float64(float64[:])")
def typed(x):
    return x.mean()


@njit
def fill(x):
    x[:] = 7
    x[0] = np.int64(3)


@njit
def both(pair):
    return pair[0].sum() + pair[1].sum()


@vectorize(["float64(float64, float64)"])
def larger(a, b):
    return np.maximum(a, b) + 1


@guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
def powers(a, out):
    for i in range(a.shape[0]):
        out[i] = np.exp(a[i]) * np.pi


@numba.experimental.jitclass([("held", numba.float64[:])])
class Holder:
    def __init__(self, held):
        self.held = held

    def total(self):
        return np.sum(self.held)


@numba.stencil
def curvature(a):
    return a[-1] - 2 * a[0] + a[1]


class Disc:
    def __init__(self, radius):
        self.radius = radius


class DiscType(numba.types.Type):
    def __init__(self):
        super().__init__(name="Disc")


@numba.extending.typeof_impl.register(Disc)
def disc_type(value, context):
    return DiscType()


@numba.extending.register_model(DiscType)
class DiscModel(numba.extending.models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("radius", numba.types.float64)])


numba.extending.make_attribute_wrapper(DiscType, "radius", "radius")


@numba.extending.unbox(DiscType)
def disc_unboxed(kind, value, context):
    made = numba.core.cgutils.create_struct_proxy(kind)(context.context, context.builder)
    made.radius = context.unbox(numba.types.float64, context.pyapi.object_getattr_string(value, "radius")).value
    return numba.extending.NativeValue(made._getvalue())


@numba.extending.overload(np.absolute)
def disc_absolute(disc):
    if isinstance(disc, DiscType):
        return lambda disc: disc.radius * 2


@njit
def size(disc):
    return np.absolute(disc) + np.absolute(-1.0)


x = np.linspace(0, 1, N) * 2
before = x * 3
result = [norm(x, 2.0), norm(x, x.sum()), scaled(np.arange(1.0, 3.0))(x), typed(x), both((x, x + 1)), larger(x, x[::-1]), powers(x)]
result += [curvature(x * 8), Holder(x + 0).total()]
fill(x)
result += [size(Disc(3.0))]
result += [x, before, isinstance(scaled(x)(x), np.ndarray)]
for value in result:
    print(np.array2string(np.asarray(value), precision=9, threshold=50))
print(*[numba.typeof(value) for value in (x, x[::2], np.zeros((3, 4), "f4").T, x.sum(), (x, 1), x > 0)])
"""
