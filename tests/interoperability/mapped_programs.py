"""Programs that ask for exact types, or give arrays and results to what tells them by their types, for ``test_mapped``.

Each is run by ``python`` and by ``python -m lazynp`` and prints the same.  ``ROWS`` of a program are expressions, a printed line each.
"""

START = """
import warnings; warnings.simplefilter('ignore')
import numpy as np
n = 40
x = np.rint(np.linspace(0, 1, n) ** 2 * 1024) / 1024  # whose sums are exact
s, k = x.sum(), np.arange(n) * 7 % 5 + 1
b, m = x * 3 % 1 > 0.4, (np.arange(n * 8) * 0.001 % 1).reshape(n, 8)
"""

TYPES = """
import collections, functools
import scipy.ndimage
y = scipy.ndimage.uniform_filter(x)
table = {np.float64: 'float', np.ndarray: 'array', np.int64: 'integer', np.bool_: 'truth', float: 'Python'}
print(type(s) is np.float64, type(k.max()) is np.int64, type(b.any()) is np.bool_, type(x[0]) is np.float64, type(s * 2) is float)
print([table.get(type(v)) for v in (s, x, y, k.sum(), b.all(), 2.0, s.item(), m[0], (x + y), x.mean())])
print(type(y) is np.ndarray, type(y) == type(x), type(x) in (list, np.ndarray), type(s) not in {np.float32, np.int64})
print([type(v) is type for v in (np.ndarray, np.ufunc, np.float64, np.dtype, np.broadcast, np.nditer, np.random.Generator, int)])
print(type(np.add) is np.ufunc, type(np.linalg) is type(np), type(np.sum) is type(np.mean), str(type(s)), type(s)(3), type(x).__name__)
class Meta(type): pass
class A(metaclass=Meta): pass
class Sub(np.ndarray): pass
print(type(A) is Meta, type(A()) is A, type(Sub) is type, type(x.view(Sub)) is Sub, type(type), type(None) is type(None))
print(type('B', (), {'c': 1}).c, type(*[2]), (lambda type: type(3))(str), collections.Counter(type(v) for v in (s, 1.0, k.max())))
@functools.singledispatch
def f(v): return 'object'
f.register(np.float64)(lambda v: 'float'); f.register(np.ndarray)(lambda v: 'array'); f.register(np.integer)(lambda v: 'integer')
print(f(s), f(x), f(y), f(k.sum()), f(b.any()))
class Registry:
    kinds = {}
    def __init_subclass__(cls, of): Registry.kinds[of] = cls
class OfFloats(Registry, of=np.float64): pass
class OfArrays(Registry, of=np.ndarray): pass
print([Registry.kinds[type(v)].__name__ for v in (s, x, y, m)])
class Mine:
    def __add__(self, other): return table[type(other)], type(other) is np.ndarray, float(other[3])
large, mine = np.arange(1000.0), Mine()
print([mine + large * 2.0 for _ in range(3)])
"""

JSON = """
import io, json
print(json.dumps([s, {'a': x.mean(), 'b': [v.max() for v in (x, x + 1)]}, (x.min(), x[3])]), json.dumps(s))
print(json.dumps({s: 1, 'b': [{x[3]: s, x.max(): [x.min()]}]}), json.dumps([[{s: None}], {s: {}}], check_circular=False))
print(json.dumps({'a': s, 'b': {}}, indent=1), json.dumps({s: 1}, indent=1), json.dumps([s, {1}], default=str))
f = io.StringIO(); json.dump({'a': [s], 'b': x.tolist()[:2], 'c': [(x * np.inf).max(), -x.max()]}, f); print(f.getvalue())
for bad in (lambda: {k.sum(): 1}, lambda: b.any(), lambda: k.sum(), lambda: x.astype('f4').max(), lambda: x, lambda: {1}):
    try: print(json.dumps(bad()))
    except TypeError as error: print(error)
class Encoder(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, np.integer): return int(o)
        if isinstance(o, np.ndarray): return o.tolist()
        return super().default(o)
print(json.dumps({'a': k.sum(), 'b': x[:2], 'c': s}, cls=Encoder), Encoder(indent=1).encode([k.max(), s]))
try: json.dumps((x * np.nan).sum(), allow_nan=False)
except ValueError as error: print(error)
"""

NUMBERS = """
import datetime, decimal, fractions, time
from datetime import timedelta as after
from decimal import Decimal
from time import sleep
print(Decimal(s), decimal.Decimal(value=x.max()), Decimal("1.5"), Decimal(int(k.sum())), Decimal(s) + 1, fractions.Fraction(x.max()))
print(after(seconds=s), datetime.timedelta(x.max(), 3), datetime.timedelta(days=x.max()) * 2, after(1) * int(k.max()))
print(sleep(x.min()), time.sleep(secs) if (secs := x.min()) else None, datetime.datetime(2020, 1, 1) + after(hours=s))
for bad in (lambda: Decimal(b.any()), lambda: after(seconds=x), lambda: after(k.max()), lambda: Decimal(k.sum()), lambda: Decimal(x)):
    try: print(bad())
    except (TypeError, ValueError) as error: print(type(error).__name__)
class Sleeper:
    def sleep(self, value): return type(value) is np.float64
print(Sleeper().sleep(s), isinstance(after(1), after), issubclass(Decimal, decimal.Decimal))
"""

SPARSE = """
import scipy.sparse as sp, scipy.sparse.linalg as sl
from scipy.sparse.linalg import splu
i, v = np.arange(600).reshape(300, 2) % 30, np.arange(20.0).reshape(10, 2)
for kind in (sp.lil_matrix, sp.csr_matrix, sp.csc_array, sp.dok_array, sp.coo_array):
    a = kind((40, 40)); a[i[:, 0], i[:, 1]] = 2.0; a[i[:3, 0]] = 1; a[i[:, :1], i[::50, 1]] = 4
    print(kind.__name__, a.sum(), a[i[:5, 0], i[:5, 1]].sum(), a[i[:3, 0]].sum(), a[3, 4])
    a = kind((40, 40)); a[np.arange(10), np.arange(10)] = v[:, 1]; a[:10, 3] = v[:, :1]; a[5, :2] = v[1]; print(a.sum())
a, y = sp.csc_matrix(np.diag(np.arange(n) + 1.0)), np.arange(float(n))
print(splu(a).solve(y), sl.factorized(a)(y), sl.spilu(a).solve(y), sl.spsolve(a, y), splu(a).shape, splu(a).L.sum(), splu(A=a).nnz)
d, w = m[:6, :4] + np.eye(6, 4), np.ones(6)
print([f(d, w)[0].round(6) for f in (sl.lsqr, sl.lsmr)])
print([f(d.T @ d + 1, w[:4])[0].round(6) for f in (sl.cg, sl.gmres, sl.bicgstab, sl.minres)])
print(sl.svds(d, k=1)[1].round(6), sl.aslinearoperator(d).shape, sl.aslinearoperator(d) @ w[:4], sl.onenormest(d.T @ d).round(6))
from sklearn.preprocessing import MultiLabelBinarizer
binarizer = MultiLabelBinarizer(); found = np.asarray(binarizer.fit_transform([(1, 2), (3,), (1, 3)] * 5)) * 1
print(binarizer.inverse_transform(found), binarizer.inverse_transform(yt=found[:2]))
"""

PANDAS = """
import pandas as pd
def setitem(d, key, value):
    d = d.copy(); d[key] = value; return d
def setloc(d, key, value):
    d = d.copy(); d.loc[key] = value; return d
df = pd.DataFrame(m * 2, columns=list('abcdefgh')); df['a'] = x
ROWS = '''df[b]; df.loc[b]; df.loc[b, 'a']; df[~b & (x > 0.5)]; df.loc[x > 0.5, 'b'].sum(); df.iloc[b]; df.index[b]; df.columns[b[:8]]
df.groupby(k).sum(); df.groupby(k)['a'].mean(); df.groupby([k, b]).size(); df['a'].groupby(k).max(); df['a'][b]
df.set_index(k).index.max(); pd.unique(k); pd.factorize(k)[1]; pd.value_counts(k) if hasattr(pd, 'value_counts') else 0
pd.crosstab(k, b).sum(); pd.get_dummies(k).sum(); pd.Series([s, x.mean()]); pd.Series({'a': s, 'b': x.mean()}); pd.Series(s)
pd.Series(s, index=[1, 2]); pd.Series([x.argmax()]).dtype; pd.DataFrame({'a': [s, 1], 'b': [k.sum(), 2]}).dtypes.tolist()
pd.DataFrame([{'a': s, 'b': k.max()}]).dtypes.tolist(); pd.notna(s); pd.DataFrame([[s, k.max()]]).dtypes.tolist()
pd.DataFrame(dict(a=x, b=s)).dtypes.tolist(); pd.DataFrame({'a': s}, index=[0]).dtypes.tolist(); df + m; df > m; df * m
m + df; df - m[0]; df.eq(m).sum().sum(); df['a'] + x; x + df['a']; df['a'] > x.mean(); df['a'] / s; df.dot(m.T).sum()
df.iloc[x.argmax()]; df.head(k.max()); df.iloc[k.argmax():5]; df.nlargest(k.max(), 'a').a.sum(); df.index[x.argmax()]
df.at[k[0], 'a']; df.columns[m[0].argmax()]; df['a'].iloc[[x.argmax(), x.argmin()]]; df.loc[:, np.array([True] * 8)].shape
df.shift(k.min()).sum(); df.assign(w=s).dtypes.tolist(); setitem(df, 'w', s).dtypes.tolist()
setitem(df, 'w', x * 2)['w'].sum(); setitem(df, b, 0.5).sum(); setloc(df, (b, 'a'), 0.0)['a'].sum()
setloc(df, (b, 'a'), x[b])['a'].sum(); df.where(m > 0.5).sum(); df['a'].where(b, -1).sum(); df['a'].mask(b).sum()
df.query('a > @x.mean()').shape; df['a'].map({x.max(): 3}).sum(); df['a'].isin(x[:3]).sum(); df.take(np.argsort(x)[:5])
df.drop(np.arange(3)).shape; pd.date_range('2020', periods=k.max()).size; pd.to_datetime(k, unit='s')[0]
pd.Timestamp('2020') + pd.to_timedelta(k, unit='D'); pd.cut(x, np.array([0, .3, 1])).codes.sum(); pd.qcut(x, 4).codes.sum()
pd.Categorical(k).codes.sum(); pd.MultiIndex.from_arrays([k, b]).size; df.apply(np.sum); df.agg([np.mean, 'max'])
df.rolling(3).apply(lambda w: np.sum(w), raw=True).sum(); df['a'].quantile(np.array([.1, .5]))
df['a'].clip(x.min(), x.mean()).sum(); df.corrwith(pd.Series(x)).sum()
pd.merge(df, pd.DataFrame({'a': x[:5]}), on='a').shape; pd.concat([df, df]).shape; np.asarray(df) @ np.ones(8)
df.values[k[:3]].sum(); np.where(df['a'] > 0.5, df['a'], 0).sum().round(9); df['a'].to_numpy()[b].sum().round(9)'''
for row in ROWS.replace('; ', chr(10)).splitlines():
    try: print(row, eval(row))
    except Exception as error: print(row, type(error).__name__, error)
import io; f = io.StringIO(); df.to_csv(f); print(f.getvalue()[:300]); print(df.to_json()[:300])
y = np.arange(6.0).reshape(2, 3); d = pd.DataFrame(y, copy=False); y[0, 0] = 9; print(d.iloc[0, 0], pd.Series(x) is not None)
"""

H5PY = """
import h5py, os, tempfile
with tempfile.TemporaryDirectory() as folder, h5py.File(os.path.join(folder, 'f'), 'w') as f:
    d, y = f.create_dataset('x', data=x), np.zeros(n)
    d.write_direct(x * 2); d.read_direct(y); d[b] = 3.0; d[np.nonzero(~b)[0][:3]] = x[:3]; d[k.min():k.max()] = x[:4]
    print(y, d[b], d[k.max()], d[np.arange(5)], d[:k.max()], f.create_dataset('m', data=m)[b[:n], 1], d[...].sum())
"""

CV2 = """
import cv2
x = (np.arange(64 * 48 * 3) % 251).astype(np.uint8).reshape(64, 48, 3)
y = cv2.resize(x, (24, 32)); print(type(y) is np.ndarray, y.sum())
g, img = cv2.cvtColor(x, cv2.COLOR_BGR2GRAY), np.zeros((100, 100, 3), np.uint8)
cv2.circle(img, (50, 50), 20, (255, 0, 0), -1); img = cv2.rectangle(img, (1, 1), (9, 9), (0, 255, 0)); print(img.sum(), img.mean())
print(cv2.GaussianBlur(g, (5, 5), g.max() / 200).sum(), cv2.Canny(g, 50, 150).sum())
print(cv2.threshold(g, g.mean(), 255, cv2.THRESH_BINARY)[1].sum())
pts = np.array([[10, 10], [50, 20], [30, 60]], np.int32)
cv2.fillPoly(img, [pts], (1, 2, 3)); print(cv2.contourArea(pts), cv2.boundingRect(pts), img.sum())
t = cv2.getRotationMatrix2D((24, 32), x[0, 0].sum(), 1.0); print(cv2.warpAffine(x, t, (48, 64)).sum(), t.round(6))
print(cv2.filter2D(x, -1, np.ones((3, 3)) / 9).sum(), cv2.add(x, x).sum(), cv2.norm(x * 1.0))
ok, data = cv2.imencode('.png', x); print(ok, (cv2.imdecode(data, 1) == x).all())
print(cv2.imdecode(np.frombuffer(data.tobytes(), np.uint8), 1).shape)
big = np.ones((600, 600), np.float32); print(cv2.blur(big * 2, (3, 3)).sum(), cv2.minMaxLoc(big * 3))
z = big + 1; cv2.line(big, (0, 0), (599, 599), 5.0); cv2.circle(z, (300, 300), 50, 9.0, -1); print(big.sum(), z.sum(), (z > 8).sum())
"""

SHUFFLED = """
from sklearn.utils import check_random_state
rng, large, listed = check_random_state(3), np.arange(1000000.0).reshape(-1, 2), [1, 2, 3]
y, other = np.arange(24).reshape(8, 3), large + 1
rng.shuffle(y); print(y); rng.shuffle(y.T[::-1]); print(y); rng.shuffle(y[2:6, 1]); print(y); rng.shuffle(x=m); print(m[:2])
rng.shuffle(large); print(large[:3], large.sum(), other.sum()); rng.shuffle(listed); print(listed)
shuffle = rng.shuffle; z = y * 2; shuffle(z); print(z, np.random.default_rng(1).permutation(5).shape)
"""

PROGRAMS = {
    "types": TYPES, "json": JSON, "numbers": NUMBERS, "sparse": SPARSE, "pandas": PANDAS, "h5py": H5PY, "cv2": CV2, "shuffled": SHUFFLED,
}  # fmt: skip
