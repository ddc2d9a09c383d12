"""``python -m bench.sweep``: one call of each of some 300 functions, NumPy and lazynp in turns, at one size.

In: ``--rows N`` (the matrices are N x N), ``--dtype``, ``--arrays`` (own: made by the library; lent: memory that an array of NumPy's
outside shows, too; hot: own, in a program that has computed much with large arrays), ``--only TEXT``, ``--seconds`` a function,
``--below RATIO``.  Out: the functions that lazynp computes more slowly than that, the slowest first, and the geometric mean of all.  Each
library computes in a process of its own; results are asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy

from bench.measure import in_turns
from bench.processes import Ask, EndedError, conversation

LIMIT: Final = 60.0  # seconds that one function may take
OF_A: Final = (  # functions of the matrix `a`, with further arguments
    "all any argmax argmin argpartition:9 argsort argwhere around array average ascontiguousarray asfortranarray clip:.2,.5 copy "
    "cov corrcoef count_nonzero cumprod cumsum diagonal diff ediff1d fix flatnonzero flip fliplr flipud imag iscomplex isneginf "
    "isposinf isreal isfinite isinf max mean median min nan_to_num nanargmax nancumsum nanmax nanmean nanmedian nanmin "
    "nanpercentile:30 nanprod nanstd nansum nanvar nonzero ones_like full_like:2 zeros_like partition:9 percentile:30 prod ptp "
    "quantile:.3 ravel real repeat:2 resize:(20,30) roll:1 rot90 round sinc sort std sum swapaxes:0,1 take:[0,3] tile:2 trace "
    "transpose trapezoid unique unwrap var tril triu gradient delete:1 insert:1,9 append:3 i0 angle histogram isnan signbit "
    "spacing sign floor ceil trunc rint exp expm1 log1p log2 log10 cbrt arctan sinh tanh square reciprocal negative deg2rad "
    "absolute logical_not"
)
BY_AXIS: Final = "sum mean std var max min argmax any all prod median cumsum sort argsort nansum nanmean ptp count_nonzero average nanmax"
OTHERS: Final = """
    np.allclose(a,a); np.array_equal(a,a); np.block([[a,a],[a,a]]); np.column_stack([v,v]); np.compress(m,v); np.concatenate([a,a]);
    np.concatenate([a,a],1); np.convolve(v,v[:9]); np.correlate(v,v[:9]); np.copyto(c,a); np.copyto(c,3); np.digitize(v,[0,.5,1]);
    np.dot(v,v); a@v[:n]; v[:n]@a; np.dstack([a,a]); np.einsum('ij,ij->i',a,a); np.einsum('ij->j',a); np.einsum('ij,j->i',a,v[:n]);
    np.extract(a>.5,a); np.einsum('i,j->ij',v[:n],v[:n]); np.hstack([a,a]); np.vstack([a,a]); np.stack([a,a]); np.stack([a,a],-1);
    np.indices((n,n)); np.interp(v,[0,.5,1],[2,3,4]); np.isclose(a,a); np.isin(i,[1,5]); np.kron(v[:n//10],a[:10]);
    np.lexsort((v,i)); np.meshgrid(v[:n],v[:n]); np.outer(v[:n],v[:n]); np.pad(a,2); np.pad(a,2,mode='edge');
    np.pad(a,2,mode='wrap'); np.piecewise(v,[v<.3,v>=.3],[0,1]); np.select([a<.3,a>.6],[a,a*2],0);
    np.searchsorted(np.sort(v[:n]),v[:1000]); np.where(a>.5,a,0); np.where(a>.5,a,b); a%.3; a//.3; np.divmod(a,.3); a**b; a**2;
    a**3; a**.5; a**-1.0; np.hypot(a,b); np.arctan2(a,b); np.maximum(a,b); np.fmax(a,b); np.logaddexp(a,b); np.copysign(a,b);
    np.heaviside(a,.5); np.float_power(a,2); np.fmod(a,.3); np.ldexp(a,2); np.frexp(a); np.modf(a); i+i; i*3; i//3; i%7; i<<2; i&7;
    i/3; i.sum(); i.cumsum(); i**2; i>3; i.max(); m.sum(); m&m; ~m; m|(v>.2); v[m]; c[a>.5]=0; v[i]; w[i]=1.; a[i[:n],i[:n]];
    a[3]*2; a[:,3]*2; a[::2]*2; a[:,::2]*2; a[1:-1,1:-1]*4-a[:-2,1:-1]-a[2:,1:-1]-a[1:-1,:-2]-a[1:-1,2:]; a.T+a; a+v[:n];
    a+v[:n,None]; z*z; np.abs(z); np.exp(z); np.conj(z); z+1; z.real+z.imag; f+f; np.exp(f); f.sum(); f+v; u+u; u.mean();
    u.astype('f8'); h+h; np.add.reduce(a); np.add.accumulate(v); np.add.outer(v[:n],v[:n]); np.add.at(w,i[:1000],1.);
    np.bincount(i); np.bincount(i,weights=v); np.histogram2d(v,v); np.fft.fft(v); np.fft.rfft(v); np.fft.fft2(a);
    np.fft.fftshift(a); np.linalg.norm(a); np.linalg.norm(a,axis=1); np.full((n,n),2.); np.ones((n,n)); np.zeros((n,n));
    np.arange(n*n); np.arange(0,1,1/n/n); np.linspace(0,1,n*n); np.eye(n); np.tri(n); np.vander(v[:n],20); np.geomspace(1,100,n*n);
    np.logspace(0,1,n*n); np.fromfunction(lambda i,j:i+j,(n,n)); a.tolist(); a.tobytes(); [r[0] for r in a]; rng.random((n,n));
    rng.normal(size=(n,n)); np.polyval([1,2,3],v); rng.integers(0,9,(n,n)); 1/(1+np.exp(-a)); (a-a.mean(0))/a.std(0);
    (v[:n,None]-v[None,:n])**2; a.clip(.1,.9).sum(); ((a*b+a)*2-b)*a; np.exp(a-a.max(1,keepdims=True)); a.reshape(-1)+1;
    a.T.reshape(-1)+1; np.unique_counts(i); np.unique(i,return_inverse=True); np.intersect1d(i[:1000],i[500:1500]); np.trapezoid(v);
    np.nanpercentile(a,30,axis=0); np.percentile(a,[10,90],axis=0); a.round(2); a@b; np.put(w,i[:1000],1.); np.take(a,i[:n],axis=0);
    np.take_along_axis(a,np.argsort(a,1),1); np.choose(i%2,[v,v*2]); a[np.ix_(i[:n],i[:n])]; a[np.triu_indices(n)]; c+=a; c-=v[:n];
    c.fill(3.); c[1:]=a[1:]; c[1:-1]=(a[2:]+a[:-2])*.5; np.add(a,b,out=c)
"""


def calls() -> list[str]:
    """Return the statements that are measured."""
    of_a = [f"np.{name}(a{',' + rest if rest else ''})" for name, _, rest in (word.partition(":") for word in OF_A.split())]
    by_axis = [f"np.{name}(a,axis={axis})" for name in BY_AXIS.split() for axis in (0, 1)]
    return [*of_a, *by_axis, *[call.strip().replace("\n", " ") for call in OTHERS.split(";") if call.strip()]]


def operands(np: Any, n: int, dtype: str, lent: bool) -> dict[str, Any]:
    """What the statements compute with, and the memory outside that it shows where it is lent."""
    random = numpy.random.default_rng(1)
    held = []

    def made(x: Any) -> Any:
        held.append(x)
        return np.asarray(x) if lent else np.array(x)

    def numbers(*shape: int) -> Any:
        x = random.random(shape)
        return made(x.astype(dtype) if numpy.dtype(dtype).kind == "f" else (x * 100 + 1).astype(dtype))

    return {
        "np": np, "n": n, "held": held, "rng": np.random.default_rng(3), "a": numbers(n, n), "b": numbers(n, n),
        "c": np.array(random.random((n, n))), "v": numbers(n * n), "w": np.array(random.random(n * n)),
        "i": made(random.integers(0, n, n * n)), "m": made(random.random(n * n) > 0.5),
        "z": made(random.random(n * n) + 1j * random.random(n * n)), "f": made(random.random(n * n).astype("f4")),
        "u": made(random.integers(0, 255, n * n).astype("u1")), "h": made(random.random(n * n).astype("f2")),
    }  # fmt: skip


def force(x: Any) -> None:
    """Have results computed, those in lists and tuples as well."""
    if hasattr(x, "realize"):
        x.realize()
    elif type(x) in (tuple, list):
        for item in x[:4]:
            force(item)


def serve(library: str, n: str, dtype: str, arrays: str) -> None:
    """Answer how long a statement takes, as often as is asked, a line of JSON each."""
    np = importlib.import_module(library)
    if arrays == "hot" and library == "lazynp":
        importlib.import_module("lazynp.array.core").first_work(0)
    names = operands(np, int(n), dtype, arrays == "lent")
    names["_force"] = force
    known: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        question = json.loads(line)
        call, count = question["call"], question["count"]
        try:
            if call not in known:
                known[call] = _function(call, names)
            begun = time.perf_counter()
            for _ in range(count):
                known[call]()
            answer = {"seconds": (time.perf_counter() - begun) / count}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def _function(call: str, names: dict[str, Any]) -> Callable[[], Any]:
    """A function that runs a statement, and asks for the value of an expression."""
    try:
        compile(call, "<call>", "eval")
        body = f"_force({call})"
    except SyntaxError:
        body = f"global c, w\n    {call}"
    exec(f"def _call():\n    {body}", names)
    made: Callable[[], Any] = names["_call"]
    return made


def _timer(side: Ask, call: str) -> Callable[[int], float]:
    return lambda count: float(side(call=call, count=count)["seconds"])


def rows(n: int, dtype: str, arrays: str, only: str, seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each statement with NumPy's and lazynp's time and their ratio, or with the error that stopped it."""
    code = "import sys; from bench.sweep import serve; serve(*sys.argv[1:])"
    with contextlib.ExitStack() as stack:
        sides: tuple[Ask, ...] = ()
        for call in [call for call in calls() if only in call]:
            try:
                if not sides:
                    commands = [["-c", code, library, str(n), dtype, arrays] for library in ("numpy", "lazynp")]
                    sides = tuple([stack.enter_context(conversation(command, LIMIT)) for command in commands])
                failed = [answer["error"] for side in sides if "error" in (answer := side(call=call, count=2))]
                first, second = (_timer(side, call) for side in sides)
                yield call, {"error": "; ".join(failed)} if failed else in_turns(first, second, seconds)
            except EndedError as error:
                stack.close()
                sides = ()
                yield call, {"error": str(error)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sweep", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=900, help="of the matrices, which are square (default 900)")
    parser.add_argument("--dtype", default="float64", help="of the matrices (default float64)")
    parser.add_argument("--arrays", choices=("own", "lent", "hot"), default="own")
    parser.add_argument("--only", default="", metavar="TEXT", help="only statements with TEXT in them")
    parser.add_argument("--seconds", type=float, default=0.2, help="how long each is measured (default 0.2)")
    parser.add_argument("--below", type=float, default=0.9, metavar="RATIO", help="print those that are slower than that (default 0.9)")
    options = parser.parse_args()
    found = []
    for call, row in rows(options.rows, options.dtype, options.arrays, options.only, options.seconds):
        if "error" in row:
            print(f"{call}: {row['error']}")
        else:
            found.append((row["ratio"], row["first_seconds"], row["second_seconds"], call))
    for ratio, theirs, ours, call in sorted(found):
        if ratio < options.below:
            print(f"{ratio:6.2f}x {theirs * 1e6:10.1f} us {ours * 1e6:10.1f} us  {call}")
    mean = math.exp(statistics.fmean(math.log(row[0]) for row in found)) if found else math.nan
    what = f"{len(found)} statements, {options.rows} x {options.rows}, {options.dtype}, {options.arrays}"
    print(f"{what}: {mean:.2f}x of NumPy's speed in the mean")


if __name__ == "__main__":
    main()
