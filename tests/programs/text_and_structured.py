"""Records, strings, dates, files, masked arrays, printing, and functions made from functions."""

import io

from tests.programs.tolerance import close


def structured_array_loop(np):
    people = np.array([("Ann", 31, 1.7), ("Bob", 25, 1.8), ("Eve", 42, 1.6)], dtype=[("name", "U10"), ("age", "i4"), ("height", "f8")])
    people["age"] += 1
    oldest = people[people["age"].argmax()]
    lines = [f"{p['name']:<5}{p['age']:>3}" for p in people]
    return lines, str(oldest["name"]), people["height"].mean(), np.sort(people, order="age")["name"].tolist()


def structured_filters_and_views(np):
    data = np.zeros(4, dtype=[("id", np.int32), ("xy", np.float64, 2)])
    data["id"] = [4, 3, 2, 1]
    data["xy"][:, 0] = np.arange(4)
    data["xy"][data["id"] > 2] = -1
    return data["xy"], data[data["id"] < 3]["id"], data.dtype.names, data.itemsize


def record_array(np):
    r = np.rec.fromarrays([np.arange(3), np.array([0.5, 1.5, 2.5])], names="n,v")
    return r.n, r.v.sum(), r[1].v, [int(x.n) for x in r]


def string_arrays(np):
    words = np.array(["apple", "Fig", "banana", "kiwi"])
    upper = np.char.upper(words)
    lengths = np.char.str_len(words)
    return upper, lengths, words[lengths > 4], np.sort(words), np.char.add(words, "!").tolist(), words == "Fig"


def string_counts(np):
    text = "the cat and the dog and the bird"
    words, counts = np.unique(np.array(text.split()), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(str(words[i]), int(counts[i])) for i in order], "".join(sorted(set(text)))


def caesar_cipher(np):
    letters = np.frombuffer(b"HELLOWORLD", dtype=np.uint8)
    coded = (letters - 65 + 3) % 26 + 65
    decoded = (coded.astype(int) - 65 - 3) % 26 + 65
    return coded.tobytes().decode(), decoded.astype(np.uint8).tobytes(), np.bincount(letters - 65, minlength=26).argmax()


def letters_as_codes(np):
    text = "level noon radar stats abc"
    out = {}
    for word in text.split():
        codes = np.array([ord(c) for c in word])
        out[word] = bool((codes == codes[::-1]).all())
    return out, np.array(list("hello")).view(np.uint32)


def datetime_arithmetic(np):
    days = np.arange("2024-02-26", "2024-03-04", dtype="datetime64[D]")
    gaps = np.diff(days)
    weekday = (days.astype("datetime64[D]").view("int64") - 4) % 7
    return days, gaps.sum(), weekday, (days[-1] - days[0]).astype(int), np.datetime64("2024-03-01") in days


def calendar_months(np):
    dates = np.array(["2023-01-31", "2023-02-15", "2023-12-31"], dtype="datetime64[D]")
    months = dates.astype("datetime64[M]")
    in_month = (dates - months).astype(int) + 1
    return months.astype(int) % 12 + 1, in_month, np.busday_count("2023-01-01", "2023-02-01"), str(dates[0] + np.timedelta64(1, "D"))


def save_and_load(np):
    buffer = io.BytesIO()
    a = np.arange(6).reshape(2, 3) * 1.5
    np.save(buffer, a)
    buffer.seek(0)
    b = np.load(buffer)
    return b, b.dtype.str, (a == b).all()


def archives(np):
    buffer = io.BytesIO()
    np.savez(buffer, x=np.arange(3), y=np.eye(2, dtype=np.float32))
    buffer.seek(0)
    with np.load(buffer) as archive:
        names = sorted(archive.files)
        return names, archive["x"] + 1, archive["y"]


def text_tables(np):
    text = "# t v\n0 1.5\n1 2.5\n2 -4\n"
    data = np.loadtxt(io.StringIO(text))
    out = io.StringIO()
    np.savetxt(out, data * 2, fmt="%.2f", delimiter=",", header="t,v")
    return data, out.getvalue(), data[:, 1].sum()


def genfromtxt_with_gaps(np):
    text = "a,b,c\n1,2,3\n4,,6\n7,8,\n"
    data = np.genfromtxt(io.StringIO(text), delimiter=",", skip_header=1)
    named = np.genfromtxt(io.StringIO(text), delimiter=",", names=True, filling_values=-1)
    return np.nanmean(data, axis=0), np.isnan(data).sum(), named["b"], named.dtype.names


def masked_readings(np):
    raw = np.array([3.0, -999, 5, 7, -999])
    m = np.ma.masked_equal(raw, -999)
    return m.mean(), m.count(), m.filled(0.0), m.mask, (m - m.min()).compressed(), np.ma.masked_where(raw > 4, raw).sum()


def masked_in_two_dimensions(np):
    m = np.ma.array([[1, 2, 3], [4, 5, 6]], mask=[[0, 1, 0], [0, 0, 1]])
    m[0, 0] = np.ma.masked
    return m.sum(axis=0).filled(-1), m.sum(axis=1).tolist(), np.ma.median(m), m.mask.any(axis=0)


def printing_arrays(np):
    a = np.arange(6).reshape(2, 3)
    b = np.linspace(0, 1, 5)
    with np.printoptions(precision=2, suppress=True):
        short = str(b / 3)
    return str(a), repr(b), short, f"{a[1, 2]} {b[1]:.3f} {a.mean():8.2f} {b.max()!r}", np.array2string(b, separator=", ")


def formatted_report(np):
    values = np.array([3.14159, 2.71828, 1.41421])
    lines = []
    for name, v in zip("abc", values, strict=True):
        lines.append("%s=%6.3f" % (name, v))
    lines.append(f"max {values.max():e} argmax {values.argmax():d} sum {values.sum() * 1000:,.1f}")
    return lines, str(values.astype(int)), repr(values[0]), ",".join(str(round(float(v), 2)) for v in values)


def vectorised_functions(np):
    @np.vectorize
    def clamp(v, lo, hi):
        return lo if v < lo else hi if v > hi else v

    parity = np.vectorize(lambda n: "even" if n % 2 == 0 else "odd")
    return clamp(np.array([-5, 0, 5, 10]), 0, 7), parity(np.arange(4)).tolist(), clamp(np.array([1.5, 9.0]), 2.0, 8.0)


def ufuncs_from_python(np):
    hexes = np.frompyfunc(hex, 1, 1)
    digit_sum = np.frompyfunc(lambda n: sum(map(int, str(n))), 1, 1)
    return hexes(np.array([10, 255])).tolist(), digit_sum(np.array([99, 123])).astype(int), np.frompyfunc(divmod, 2, 2)(7, 2)


def errstate_blocks(np):
    x = np.array([-1.0, 0.0, 4.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 1 / x
        root = np.sqrt(x)
        ratio = x / x
    return inverse, np.nan_to_num(root, nan=-1), np.where(np.isfinite(ratio), ratio, 0)


def errstate_raising(np):
    caught = []
    for numerator, denominator in [(1, 2), (1, 0), (0, 0)]:
        try:
            with np.errstate(all="raise"):
                quotient = np.array([numerator]) / np.array([denominator])
                caught.append(float(quotient[0]))
        except FloatingPointError as error:
            caught.append(str(error).split()[0])
    return caught


def out_argument_pipeline(np):
    x = np.linspace(0, 1, 6)
    buffer = np.empty_like(x)
    np.multiply(x, 2, out=buffer)
    np.add(buffer, 1, out=buffer)
    np.square(buffer, out=buffer)
    mask = np.empty(6, bool)
    np.greater(buffer, 4, out=mask)
    np.sqrt(buffer, out=buffer, where=mask)
    total = np.cumsum(buffer, out=np.empty(6))
    return buffer, mask, total


def object_arrays(np):
    jagged = np.array([[1, 2], [3], []], dtype=object)
    sizes = np.array([len(v) for v in jagged])
    big = np.array([10**20, 3], dtype=object)
    return sizes, jagged[1], (big * 2).tolist(), big.sum()


def raw_bytes(np):
    a = np.array([1, 256, 65536], dtype="<u4")
    raw = a.tobytes()
    back = np.frombuffer(raw, dtype=np.uint32)
    swapped = a.byteswap()
    return raw, back, swapped, a.view(np.uint8).reshape(3, 4), np.array(3.5, np.float32).view(np.uint32)


def floating_point_anatomy(np):
    x = np.array([1.0, -0.5, 10.0, 0.1])
    mantissa, exponent = np.frexp(x)
    bits = x.view(np.int64)
    fraction, whole = np.modf(x)
    return mantissa, exponent, bits >> 52 & 0x7FF, np.ldexp(mantissa, exponent) == x, fraction, whole, np.spacing(1.0), np.finfo(float).eps


def type_promotion_tour(np):
    i8, u8, f4 = np.array([100], np.int8), np.array([200], np.uint8), np.array([0.5], np.float32)
    total = i8 + u8
    names = [np.result_type(i8, f4).name, (i8 / u8).dtype.name, *[type(v.item()).__name__ for v in (total[0], f4[0])]]
    return total, i8 + i8, u8 * 2, f4 * 2, f4 + np.float64(1), names


@close(1e-15, "hypotenuses within 4 ulp")
def complex_plane(np):
    z = np.array([3 + 4j, 1 - 1j, -2j])
    z.real[1] = 5
    z.imag *= 2
    return z, np.abs(z), z.conj().T, (z * z.conj()).real, np.iscomplex(z), z.real.sum()
