/* Elementwise operations of a program of large arrays, in one pass: what runs before there is a kernel, and where none pays.

   In: steps, as the NumPy tier describes them, and arrays of one shape in C's order.  Out: the results that are wanted.  Promise: nothing is compiled;
   the bits are those of kernels; where an error is raised that is not ignored, nothing is returned, and the caller goes step by step. */

#ifndef LAZYNP_PROGRAMS_H
#define LAZYNP_PROGRAMS_H

#include "functions.h"

typedef struct {
    int steps, arrays, numbers;
    Step step[CHAIN_STEPS];
    char out[CHAIN_STEPS];               /* steps whose results are wanted */
    signed char array[CHAIN_ARRAYS + 1];  /* the dtypes of what is read */
    signed char number[CHAIN_STEPS + 1];
} Together;

static void together_free(PyObject* capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, NULL)); }

/* The loops of a ufunc of NumPy's, or of the kernels' function of that name; NULL where there are none that may be a step. */
static Loops* loops_for(PyObject* ufunc, int kernels, int type) {
    if (ufunc == where_loops.ufunc) return where_loops.of[type].function ? &where_loops : NULL;
    for (Ufunc* of = ufuncs_bound; of; of = of->next) {
        Loops* loops = kernels ? of->kernels : of->loops;
        if (of->numpy != ufunc || loops == NULL) continue;
        if (!kernels) loop_of(loops, type); /* compares it, the first time */
        return loops->of[type].function && loops->of[type].state == USABLE && loops->of[type].joins && !loops->of[type].raises ? loops : NULL;
    }
    return NULL;
}

static int together_operand(Together* self, PyObject* operand, int k, int type, Operand* to) {
    int kind, number;
    if (!PyArg_ParseTuple(operand, "ii", &kind, &number)) return -1;
    if (kind == OF_STEP ? number < 0 || number >= k || self->step[number].out != type : number < 0 || number >= (kind == OF_ARRAY ? CHAIN_ARRAYS : CHAIN_STEPS)) return 0;
    if (kind == OF_ARRAY) {
        if (self->array[number] >= 0 && self->array[number] != type) return 0;
        self->array[number] = (signed char)type;
        if (number >= self->arrays) self->arrays = number + 1;
    } else if (kind == OF_NUMBER) {
        self->number[number] = (signed char)type;
        if (number >= self->numbers) self->numbers = number + 1;
    }
    *to = (Operand){(short)kind, (short)number};
    return 1;
}

/* `steps`: `(ufunc, kernels, type of the operands, type of the result, operands)`, where an operand is a kind (0: array, 1: number, 2: step) and its place; `ufunc` is
   None for a cast.  None where they cannot be in one pass. */
static PyObject* together_new(PyObject* steps, PyObject* outs) {
    Together* self = PyMem_Calloc(1, sizeof(Together));
    PyObject* made;
    int fine = 1;
    if (self == NULL) return PyErr_NoMemory();
    memset(self->array, -1, sizeof(self->array)), memset(self->number, -1, sizeof(self->number));
    for (Py_ssize_t k = 0; fine > 0 && k < PyTuple_GET_SIZE(steps); k++) {
        PyObject *ufunc, *operands;
        int kernels, type, out;
        Loops* loops;
        Step* step = &self->step[k];
        if (k == CHAIN_STEPS || !PyArg_ParseTuple(PyTuple_GET_ITEM(steps, k), "OiiiO", &ufunc, &kernels, &type, &out, &operands)) {
            fine = k == CHAIN_STEPS ? 0 : -1;
            break;
        }
        if (!IS_NUMERIC(type) || !IS_NUMERIC(out) || type == NPY_HALF || out == NPY_HALF) fine = 0; /* kernels compute halves as singles */
        else if (ufunc == Py_None) loops = cast_loops[out].of[type].function ? &cast_loops[out] : NULL;
        else loops = loops_for(ufunc, kernels, type);
        if (fine && (loops == NULL || loops->nin != PyTuple_GET_SIZE(operands) || loops->of[type].out != out || PyTypeNum_ISCOMPLEX(type))) fine = 0;
        if (fine <= 0) break;
        step->loops = loops, step->type = (short)type, step->out = (short)out;
        for (int o = 0; fine > 0 && o < loops->nin; o++) fine = together_operand(self, PyTuple_GET_ITEM(operands, o), (int)k, operand_type(loops, type, o), &step->of[o]);
        self->steps++;
    }
    for (Py_ssize_t k = 0; fine > 0 && k < PyTuple_GET_SIZE(outs); k++) {
        long out = PyLong_AsLong(PyTuple_GET_ITEM(outs, k));
        if (out < 0 || out >= self->steps) fine = PyErr_Occurred() ? -1 : 0;
        else self->out[out] = 1;
    }
    if (fine <= 0) {
        PyMem_Free(self);
        return fine < 0 ? NULL : Py_NewRef(Py_None);
    }
    made = PyCapsule_New(self, NULL, together_free);
    if (made == NULL) PyMem_Free(self);
    return made;
}

/* How what is read lies, as rows; 0 where it lies otherwise, as transposed matrices do, for which NumPy goes through all in another order. */
static int lie_in_rows(const Chain* chain, PyArrayObject* first, Rows2* of) {
    int ndim = PyArray_NDIM(first);
    npy_intp steps[CHAIN_ARRAYS + 1][AXES];
    if (chain->flat) return rows_flat(of, chain), 1;
    if (ndim > AXES) return 0;
    for (int k = 0; k < chain->arrays; k++) {
        npy_intp before = NPY_MAX_INTP;
        for (int axis = 0; axis < ndim; axis++) {
            npy_intp step = steps[k][axis] = PyArray_DIM(first, axis) == 1 ? 0 : PyArray_STRIDE(chain->array[k], axis);
            if (step < 0 || step > before) return 0;
            if (step) before = step;
        }
    }
    return rows_joined(of, chain->arrays, ndim, PyArray_DIMS(first), steps);
}

#define ROOM_FROM (1 << 20) /* bytes of a result, from which on it lies where the caller has it lie */

/* Memory for a result of the shape of `like`; of large ones `room(dtype, shape)` gives it. */
static PyArrayObject* result_in(PyObject* room, PyArrayObject* like, int type, npy_intp size) {
    PyArray_Descr* dtype = PyArray_DescrFromType(type);
    PyObject *shape, *made;
    if (size * PyDataType_ELSIZE(dtype) < ROOM_FROM) {
        Py_DECREF(dtype);
        return result_of(PyArray_NDIM(like), PyArray_DIMS(like), type, size);
    }
    shape = PyArray_IntTupleFromIntp(PyArray_NDIM(like), PyArray_DIMS(like));
    made = shape ? PyObject_CallFunctionObjArgs(room, (PyObject*)dtype, shape, NULL) : NULL;
    Py_XDECREF(shape), Py_DECREF(dtype);
    return (PyArrayObject*)made;
}

/* Compute; a tuple of the results, or None where it has to be done step by step. */
static PyObject* together_compute(PyObject* capsule, PyObject* arrays, PyObject* numbers, int minded, PyObject* room) {
    const Together* self = PyCapsule_GetPointer(capsule, NULL);
    PyArrayObject* first;
    PyObject *made[CHAIN_STEPS] = {NULL}, *results = NULL;
    Chain* chain;
    Outs outs;
    Rows2 of;
    Py_ssize_t count = 0;
    int fine = 0, ndim;
    if (self == NULL) return NULL;
    if (PyTuple_GET_SIZE(arrays) != self->arrays || PyTuple_GET_SIZE(numbers) != self->numbers || self->arrays == 0) return Py_NewRef(Py_None);
    first = (PyArrayObject*)PyTuple_GET_ITEM(arrays, 0);
    if ((chain = chain_made()) == NULL) return PyErr_NoMemory();
    chain->steps = chain->arrays = chain->numbers = 0;
    if (!chain_holds(chain, self->steps > self->numbers ? self->steps : self->numbers, self->arrays)) {
        chain_unmade(chain);
        return PyErr_NoMemory();
    }
    ndim = PyArray_CheckExact(first) ? PyArray_NDIM(first) : 0;
    chain->steps = self->steps, chain->arrays = self->arrays, chain->numbers = self->numbers, chain->flat = 1, chain->whole = chain->wide = 0;
    for (int k = 0; k < self->steps; k++) chain->at[k].step = self->step[k];
    for (int k = 0; k < self->arrays; k++) {
        PyArrayObject* x = (PyArrayObject*)PyTuple_GET_ITEM(arrays, k);
        if (!PyArray_CheckExact(x) || PyArray_TYPE(x) != self->array[k] || !PyArray_ISBEHAVED_RO(x) || ndim == 0 || !PyArray_SAMESHAPE(x, first)) goto done;
        chain->array[k] = x, chain->source[k] = NULL;
        chain->flat &= PyArray_IS_C_CONTIGUOUS(x);
    }
    for (int k = 0; k < self->numbers; k++) {
        PyObject* x = PyTuple_GET_ITEM(numbers, k);
        PyArray_Descr* descr = PyArray_IsScalar(x, Generic) ? PyArray_DescrFromScalar(x) : NULL;
        int type = descr ? descr->type_num : -1;
        Py_XDECREF(descr);
        if (type != self->number[k]) goto done;
        PyArray_ScalarAsCtype(x, &chain->value[k]);
    }
    chain->size = size_of(first);
    if (!lie_in_rows(chain, first, &of)) goto done;
    outs_begin(&outs);
    for (int k = 0; k < self->steps; k++) outs.wanted[k] = self->out[k], outs.to[k] = NULL, outs.put[k] = NULL, outs.count += self->out[k];
    outs_close(chain, &outs);
    for (int k = 0; k < self->steps; k++) {
        if (!self->out[k]) continue;
        if ((made[k] = (PyObject*)result_in(room, first, self->step[k].out, chain->size)) == NULL) goto done;
        outs.to[k] = PyArray_BYTES((PyArrayObject*)made[k]);
    }
    fine = chain->size > 0 && !pass_run(chain, &outs, &of, minded);
    if (fine && (results = PyTuple_New(outs.count)))
        for (int k = 0; k < self->steps; k++)
            if (made[k]) PyTuple_SET_ITEM(results, count++, made[k]), made[k] = NULL;
done:
    for (int k = 0; k < self->steps; k++) Py_XDECREF(made[k]);
    chain_unmade(chain);
    return results || PyErr_Occurred() ? results : Py_NewRef(Py_None);
}

/* `x op= b` of arrays where the elements lie; which errors were raised, -1 where nothing was written.  No code of a program's runs: it cannot be
   stopped halfway. */
static int written_over(PyObject* ufunc, PyObject* x, PyObject* b) {
    PyArrayObject *to = (PyArrayObject*)x, *y = (PyArrayObject*)b;
    int type = PyArray_TYPE(to), errors = 0;
    Loop* loop = NULL;
    for (int op = 0; op < BINARIES; op++)
        if (binary_loops[op].ufunc == ufunc && IS_NUMERIC(type)) (void)loop_of(&binary_loops[op], type), loop = &binary_loops[op].of[type]; /* the first time it is compared */
    if (loop == NULL || loop->state != USABLE || loop->out != type || !is_written_plainly(to) || PyArray_TYPE(y) != type || !PyArray_ISBEHAVED_RO(y)) return -1;
    return over_run(loop, to, y, NULL, &errors) ? errors : -1;
}

#endif
