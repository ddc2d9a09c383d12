"""Matrices by hand: factorisations, iterations, graphs as matrices."""

from tests.programs.tolerance import close


def _spd(np, n):
    a = np.arange(n * n, dtype=float).reshape(n, n) % 7
    return a @ a.T + n * np.eye(n)


def lu_in_place(np):
    a = np.array([[4.0, 3, 2], [8, 8, 5], [4, 7, 9]])
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return np.tril(a, -1) + np.eye(n), np.triu(a)


def lu_outer_products(np):
    a = np.array([[2.0, 1, 1, 0], [4, 3, 3, 1], [8, 7, 9, 5], [6, 7, 9, 8]])
    original = a.copy()
    for k in range(3):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    lower, upper = np.tril(a, -1) + np.identity(4), np.triu(a)
    return lower, upper, np.allclose(lower @ upper, original)


@close(1e-15, "dot products of up to 4 terms are added in another order")
def cholesky_loops(np):
    a = _spd(np, 4)
    lower = np.zeros_like(a)
    for j in range(4):
        lower[j, j] = np.sqrt(a[j, j] - np.dot(lower[j, :j], lower[j, :j]))
        for i in range(j + 1, 4):
            lower[i, j] = (a[i, j] - np.dot(lower[i, :j], lower[j, :j])) / lower[j, j]
    return lower, np.allclose(lower @ lower.T, a)


@close(1e-15, "norms and projections of 5 terms, each step cancels digits")
def gram_schmidt(np):
    a = np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 2, 0], [0, 1, 3]])
    q, r = np.zeros((5, 3)), np.zeros((3, 3))
    for j in range(3):
        v = a[:, j].copy()
        for i in range(j):
            r[i, j] = q[:, i] @ a[:, j]
            v -= r[i, j] * q[:, i]
        r[j, j] = np.linalg.norm(v)
        q[:, j] = v / r[j, j]
    return q, r, np.allclose(q.T @ q, np.eye(3))


@close(1e-15, "norms and projections of 4 terms, each step cancels digits")
def modified_gram_schmidt_in_place(np):
    q = np.array([[1.0, 2, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    for j in range(q.shape[1]):
        q[:, j] /= np.sqrt((q[:, j] ** 2).sum())
        q[:, j + 1 :] -= np.outer(q[:, j], q[:, j] @ q[:, j + 1 :])
    return q


@close(1e-15, "BLAS products of 4 terms, repeated until they agree")
def power_iteration(np):
    a = _spd(np, 4)
    v = np.ones(4)
    value = 0.0
    for step in range(100):
        w = a @ v
        v = w / np.linalg.norm(w)
        last, value = value, v @ a @ v
        if abs(value - last) < 1e-6:
            break
    return v, value, step


@close(1e-15, "every step divides sums of 6 terms by each other")
def conjugate_gradient(np):
    a, b = _spd(np, 6), np.arange(6.0)
    x = np.zeros(6)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for k in range(20):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < 1e-8:
            break
        p = r + (new / rs) * p
        rs = new
    return x, k < 8, np.allclose(a @ x, b)


def gaussian_elimination_pivoting(np):
    a = np.array([[0.0, 2, 1, 4], [1, 1, 0, 3], [2, 1, 1, 7]])
    n = 3
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        a[k] = a[k] / a[k, k]
        for i in range(n):
            if i != k:
                a[i] -= a[i, k] * a[k]
    return a[:, -1], a


def thomas_algorithm(np):
    n = 6
    a, b, c, d = np.full(n, -1.0), np.full(n, 4.0), np.full(n, -1.0), np.arange(1.0, n + 1)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x = np.zeros(n)
    x[-1] = d[-1] / b[-1]
    for i in reversed(range(n - 1)):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


@close(1e-15, "BLAS products of 3 terms")
def newton_schulz_inverse(np):
    a = np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    x = a.T / (np.abs(a).sum(0).max() * np.abs(a).sum(1).max())
    for _ in range(8):
        x = 2 * x - x @ a @ x
    return x, np.abs(a @ x - np.eye(3)).max() < 1e-3


@close(1e-15, "norms of up to 4 terms and BLAS products")
def householder_triangularise(np):
    r = np.array([[12.0, -51, 4], [6, 167, -68], [-4, 24, -41], [1, 2, 3]])
    m, n = r.shape
    for k in range(n):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
    return np.triu(r), m


@close(1e-15, "a rotation is made of a hypotenuse")
def givens_rotation(np):
    a = np.array([[6.0, 5, 0], [5, 1, 4], [0, 4, 3]])
    r = np.hypot(a[0, 0], a[1, 0])
    c, s = a[0, 0] / r, a[1, 0] / r
    g = np.array([[c, s], [-s, c]])
    a[:2] = g @ a[:2]
    return a, g


def floyd_warshall(np):
    inf = np.inf
    d = np.array([[0, 3, inf, 7], [8, 0, 2, inf], [5, inf, 0, 1], [2, inf, inf, 0]])
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d, np.unravel_index(d.argmax(), d.shape)


def floyd_warshall_out(np):
    d = np.full((5, 5), 99, dtype=np.int32)
    np.fill_diagonal(d, 0)
    for i in range(5):
        d[i, (i + 1) % 5] = i + 1
    for k in range(5):
        np.minimum(d, d[:, [k]] + d[[k], :], out=d)
    return d


def transitive_closure(np):
    reach = np.zeros((6, 6), bool)
    for a, b in [(0, 1), (1, 2), (3, 4), (2, 0)]:
        reach[a, b] = True
    for k in range(6):
        reach |= np.outer(reach[:, k], reach[k])
    return reach, reach.sum(1)


def adjacency_powers(np):
    a = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    walks = np.linalg.matrix_power(a, 3)
    triangles = np.trace(walks) // 6
    degrees = a.sum(axis=0)
    laplacian = np.diag(degrees) - a
    return walks, triangles, laplacian, laplacian.sum()


@close(1e-15, "BLAS products of 4 terms")
def pagerank(np):
    links = np.array([[0, 0, 1, 1], [1, 0, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0]], float)
    m = links / links.sum(axis=0)
    rank = np.full(4, 0.25)
    for i in range(100):
        new = 0.15 / 4 + 0.85 * m.dot(rank)
        if np.linalg.norm(new - rank, 1) < 1e-3:
            break
        rank = new
    return rank, np.argsort(-rank), i


def toeplitz_hankel_circulant(np):
    c = np.arange(5)
    i, j = np.ogrid[:5, :5]
    toeplitz = c[np.abs(i - j)]
    circulant = c[(i - j) % 5]
    hankel = np.where(i + j < 5, c[np.minimum(i + j, 4)], 0)
    return toeplitz, circulant, hankel, np.vander(c[:3], 3)


def diagonal_updates(np):
    a = np.zeros((4, 4))
    a[np.diag_indices(4)] = [1, 2, 3, 4]
    a.flat[1::5] = -1
    a[np.arange(3) + 1, np.arange(3)] += 0.5
    np.fill_diagonal(a[:2, 2:], 9)
    return a, np.diag(a), np.diagonal(a, 1), a.trace()


def triangular_masks(np):
    a = np.arange(16).reshape(4, 4)
    upper = np.triu(np.ones((4, 4), bool), 1)
    symmetric = np.where(upper, a, a.T)
    packed = a[np.tril_indices(4)]
    unpacked = np.zeros_like(a)
    unpacked[np.tril_indices(4)] = packed
    return symmetric, packed, unpacked + np.tril(unpacked, -1).T


@close(1e-15, "BLAS products of 3 terms")
def matrix_exponential_taylor(np):
    a = np.array([[0.0, 1, 0], [-1, 0, 0.5], [0, -0.5, 0]])
    term, total = np.eye(3), np.eye(3)
    for k in range(1, 8):
        term = term @ a / k
        total += term
    return total


def kronecker_laplacian(np):
    n = 3
    t = 2 * np.eye(n, dtype=int) - np.eye(n, k=1, dtype=int) - np.eye(n, k=-1, dtype=int)
    lap = np.kron(t, np.eye(n, dtype=int)) + np.kron(np.eye(n, dtype=int), t)
    return lap, (lap == lap.T).all(), lap.diagonal()


@close(1e-15, "LAPACK on a matrix whose products were added in another order")
def least_squares_normal_equations(np):
    x = np.linspace(0, 1, 9)
    y = 3 * x**2 - x + 0.5
    design = np.stack([np.ones_like(x), x, x**2], axis=1)
    beta = np.linalg.solve(design.T @ design, design.T @ y)
    return np.round(beta, 8), np.allclose(beta, np.linalg.lstsq(design, y, rcond=None)[0])


@close(1e-15, "an eigenvalue decomposition of sums in another order")
def eigenvalues_trace_determinant(np):
    a = _spd(np, 5)
    values, vectors = np.linalg.eigh(a)
    rebuilt = (vectors * values) @ vectors.T
    return values, np.allclose(rebuilt, a), np.isclose(values.sum(), a.trace()), np.isclose(values.prod(), np.linalg.det(a))


def determinant_by_cofactors(np):
    def det(m):
        if m.shape == (1, 1):
            return m[0, 0]
        return sum((-1) ** j * m[0, j] * det(np.delete(m[1:], j, axis=1)) for j in range(m.shape[1]))

    return det(np.array([[2, 0, 1], [1, 3, 2], [1, 1, 1]]))


def einsum_contractions(np):
    a, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    t = np.arange(24).reshape(2, 3, 4)
    return (
        np.einsum("ij,jk->ik", a, b),
        np.einsum("ijk->k", t),
        np.einsum("ii", b[:, :3]),
        np.einsum("i,j->ij", a[0], b[0]),
        np.einsum("ijk,jk->i", t, b),
        np.tensordot(t, a, axes=([0, 1], [0, 1])),
    )


def strassen_blocks(np):
    a, b = np.arange(16).reshape(4, 4), np.arange(16, 0, -1).reshape(4, 4)
    (a11, a12), (a21, a22) = [np.hsplit(r, 2) for r in np.vsplit(a, 2)]
    (b11, b12), (b21, b22) = [np.hsplit(r, 2) for r in np.vsplit(b, 2)]
    m1 = (a11 + a22) @ (b11 + b22)
    m2, m3 = (a21 + a22) @ b11, a11 @ (b12 - b22)
    m4, m5 = a22 @ (b21 - b11), (a11 + a12) @ b22
    m6, m7 = (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22)
    c = np.block([[m1 + m4 - m5 + m7, m3 + m5], [m2 + m4, m1 - m2 + m3 + m6]])
    return c, (c == a @ b).all()
