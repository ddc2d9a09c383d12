/* Products of vectors and matrices, and loops over whole matrices (solves, inverses), by NumPy's loops.

   In: small vectors and matrices.  Out: NumPy's result.  Promise: a loop is used after its results were compared with NumPy's, for each kind of operands. */

#ifndef LAZYNP_PRODUCTS_H
#define LAZYNP_PRODUCTS_H

#include "direct.h"

/* Products of vectors and matrices ----------------------------------------------------------------------------------------------- */

static Loops product_loops; /* of `matmul` */
#define SMALL_PRODUCT (1 << 16) /* multiplications; more are worth NumPy's way, which lets other threads run */

/* The product as NumPy's loop makes it; NULL (perhaps without an exception) where it is NumPy's to do.  `raw`: the result is to be read by macros alone. */
static int product_into(Loop* loop, PyArrayObject* x, PyArrayObject* y, char* to, int minded) { /* whether no error was raised that is not ignored */
    int rows = PyArray_NDIM(x) == 2, columns = PyArray_NDIM(y) == 2, errors;
    npy_intp m = rows ? PyArray_DIM(x, 0) : 1, n = PyArray_DIM(x, rows), p = columns ? PyArray_DIM(y, 1) : 1, size = PyArray_ITEMSIZE(x);
    npy_intp dims[4] = {1, m, n, p};
    npy_intp steps[9] = {0, 0, 0, rows ? PyArray_STRIDE(x, 0) : 0, PyArray_STRIDE(x, rows), PyArray_STRIDE(y, 0), columns ? PyArray_STRIDE(y, 1) : 0,
                         rows ? p * size : 0, columns ? size : 0};
    char* args[3] = {PyArray_BYTES(x), PyArray_BYTES(y), to};
    flags_clear(loop->basic);
    loop->function(args, dims, steps, loop->data);
    errors = loop_errors(loop);
    return !(errors && (minded < 0 ? minds(errors) : errors & minded));
}

static PyArrayObject* product_run(Loop* loop, PyArrayObject* x, PyArrayObject* y, int raw, int minded) {
    int rows = PyArray_NDIM(x) == 2, columns = PyArray_NDIM(y) == 2;
    npy_intp m = rows ? PyArray_DIM(x, 0) : 1, p = columns ? PyArray_DIM(y, 1) : 1, lengths[2] = {rows ? m : p, p};
    PyArrayObject* r = result_room(rows + columns, lengths, loop->out, m * p, raw);
    if (r && !product_into(loop, x, y, PyArray_BYTES(r), minded)) Py_CLEAR(r);
    return r;
}

static char products_state[TYPES][2][2]; /* of products of each type, by whether the operands are matrices: each kind is another function of BLAS, whose first call costs */

static void product_check(Loop* loop, int type, int rows, int columns) {
    static const int lengths[2][2][3][3] = {{{{1, 67, 1}, {1, 1, 1}}, {{1, 9, 7}, {1, 8, 8}}}, {{{7, 9, 1}}, {{6, 5, 4}, {4, 8, 4}, {3, 1, 5}}}};
    char* state = &products_state[type][rows][columns];
    int fine = 1;
    *state = UNUSABLE;
    for (int k = 0; k < 12 && fine; k++) { /* as they are, with special values, and the second one transposed */
        const int* of = lengths[rows][columns][k / 4];
        npy_intp left[2] = {rows ? of[0] : of[1], of[1]}, right[2] = {of[1], of[2]};
        PyArrayObject *whole, *other, *x = NULL, *y = NULL, *r = NULL;
        PyObject* theirs = NULL;
        if (of[0] == 0) break;
        whole = sample(type, 0, k & 1), other = sample(type, 1, k & 1);
        if (whole) x = sample_part(whole, 0, 1 + rows, left, 0);
        if (other) y = sample_part(other, 0, 1 + columns, right, k & 2);
        if (x && y) theirs = quietly(product_loops.ufunc, (PyObject*[]){(PyObject*)x, (PyObject*)y}, 2);
        if (theirs) Py_SETREF(theirs, PyArray_FromAny(theirs, NULL, 0, 0, 0, NULL));
        if (theirs) r = product_run(loop, x, y, 0, ERRORS);
        fine = theirs && !PyErr_Occurred() && (r == NULL ? k & 1 : same_bits(r, (PyArrayObject*)theirs));
        Py_XDECREF(whole), Py_XDECREF(other), Py_XDECREF(x), Py_XDECREF(y), Py_XDECREF(r), Py_XDECREF(theirs);
    }
    loop_compared(loop, state, fine);
}

/* The loop for `x @ y` of small vectors and matrices; NULL where it is NumPy's to do. */
static Loop* product_loop(PyArrayObject* x, PyArrayObject* y) {
    int nx = PyArray_NDIM(x), ny = PyArray_NDIM(y), type = PyArray_TYPE(x);
    char state;
    Loop* loop;
    if (nx < 1 || ny < 1 || nx > 2 || ny > 2 || type != PyArray_TYPE(y) || !IS_NUMERIC(type)) return NULL;
    if (PyArray_DIM(x, nx - 1) != PyArray_DIM(y, 0) || !PyArray_ISBEHAVED_RO(x) || !PyArray_ISBEHAVED_RO(y)) return NULL;
    if (PyArray_SIZE(x) == 0 || PyArray_SIZE(y) == 0 || PyArray_SIZE(x) * (ny == 2 ? PyArray_DIM(y, 1) : 1) > SMALL_PRODUCT) return NULL;
    loop = &product_loops.of[type];
    state = products_state[type][nx - 1][ny - 1];
    if (loop->function && state == UNKNOWN) return product_check(loop, type, nx - 1, ny - 1), NULL; /* as `loop_of` */
    return state == USABLE ? loop : NULL;
}

/* `x @ y` of small vectors and matrices; NULL without an exception where it is NumPy's to do. */
static PyObject* direct_product(PyArrayObject* x, PyArrayObject* y) {
    Loop* loop = product_loop(x, y);
    Value number;
    if (loop == NULL) return NULL;
    if (PyArray_NDIM(x) == 2 || PyArray_NDIM(y) == 2) return (PyObject*)product_run(loop, x, y, 0, -1);
    return product_into(loop, x, y, (char*)&number, -1) ? number_read((char*)&number, raw_dtypes[loop->out], NULL) : NULL;
}

/* Loops over whole matrices (`solve`, `inv`, ...) ---------------------------------------------------------------------------------- */

typedef struct {
    Loops loops;
    int compared;
    int ignores; /* NumPy's function takes an invalid value for an error and hears of nothing else */
} Matrices;
#define SMALL_MATRIX 64 /* rows; more are worth NumPy's way, which lets other threads run */
#define COMPARED 4      /* results that are compared with NumPy's before a loop is used */

/* The result of NumPy's loop for operands that have its core's axes and no others; NULL (perhaps without an exception) where it is NumPy's to do. */
static PyArrayObject* matrices_run(Matrices* of, PyArrayObject* x, PyArrayObject* y) {
    PyUFuncObject* ufunc = (PyUFuncObject*)of->loops.ufunc;
    PyArrayObject *operands[3] = {x, y, NULL}, *r;
    npy_intp dims[1 + 4], steps[3 + 6] = {0}, lengths[2];
    int nin = of->loops.nin, at = nin + 1, type = PyArray_TYPE(x);
    Loop* loop = &of->loops.of[IS_NUMERIC(type) ? type : 0];
    char* args[3];
    if (type != NPY_DOUBLE || loop->function == NULL || loop->state == UNUSABLE || ufunc->core_num_dim_ix > 4 || ufunc->core_num_dims[nin] > 2) return NULL;
    dims[0] = 1;
    for (int k = 0; k < ufunc->core_num_dim_ix; k++) dims[1 + k] = -1;
    for (int o = 0; o < nin; o++) {
        if (PyArray_TYPE(operands[o]) != type || !PyArray_ISBEHAVED_RO(operands[o]) || PyArray_NDIM(operands[o]) != ufunc->core_num_dims[o]) return NULL;
        for (int k = 0; k < PyArray_NDIM(operands[o]); k++) {
            npy_intp length = PyArray_DIM(operands[o], k), *known = &dims[1 + ufunc->core_dim_ixs[ufunc->core_offsets[o] + k]];
            if (length == 0 || length > SMALL_MATRIX || (*known >= 0 && *known != length)) return NULL;
            *known = length;
            steps[at++] = PyArray_STRIDE(operands[o], k);
        }
    }
    for (int k = 0; k < ufunc->core_num_dims[nin]; k++)
        if ((lengths[k] = dims[1 + ufunc->core_dim_ixs[ufunc->core_offsets[nin] + k]]) < 0) return NULL;
    r = (PyArrayObject*)PyArray_SimpleNew(ufunc->core_num_dims[nin], lengths, loop->out);
    if (r == NULL) return NULL;
    for (int k = 0; k < PyArray_NDIM(r); k++) steps[at++] = PyArray_STRIDE(r, k);
    for (int o = 0; o < nin; o++) args[o] = PyArray_BYTES(operands[o]);
    args[nin] = PyArray_BYTES(r);
    flags_clear(0);
    loop->function(args, dims, steps, loop->data);
    if (of->ignores ? flags_raised(0) & ERROR_INVALID : minds(flags_raised(0))) Py_CLEAR(r); /* some tell of a matrix by that error */
    return r;
}

#endif
