/* Calls that are recorded by a kind of their own: reductions and scans along an axis, joins, casts, `clip`, `round`, `roll`, `diff`, views.

   In: a call with arrays that lie in memory, or wait.  Out: a cell that waits, of the shape and dtype that NumPy gives.  Promise: a call is recorded only where it cannot fail, whatever the
   elements are; all others are made at once. */

#ifndef LAZYNP_RECORDED_CALLS_H
#define LAZYNP_RECORDED_CALLS_H

#include "answers.h"

/* Calls that are recorded ---------------------------------------------------------------------------------------------------------------- */

/* `(a, axis)`, `(a, axis=axis)`, and either with `keepdims=True`, and (`off`) a number as `ddof=`: which axis; -1 of all other calls. */
static int call_axis(PyObject* const* args, Py_ssize_t n, PyObject* names, int ndim, int* keeps, int* off) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0, next = 0;
    int axis = -1;
    *keeps = 0;
    if (n == 2) axis = axis_of(args[1], ndim);
    else if (n == 1 && named && PyTuple_GET_ITEM(names, 0) == axis_name) axis = axis_of(args[1], ndim), next = 1;
    if (axis < 0) return -1;
    for (; next < named; next++) {
        PyObject *name = PyTuple_GET_ITEM(names, next), *given = args[n + next];
        int overflow;
        long number = off && name == ddof_name && PyLong_CheckExact(given) ? PyLong_AsLongAndOverflow(given, &overflow) : -1;
        if (name == keepdims_name && PyBool_Check(given)) *keeps = given == Py_True;
        else if (number >= 0 && number < 1 << 20) *off = (int)number;
        else return -1;
    }
    return axis;
}

/* Sums and means of truth values along an axis, which are counts. */
static PyArrayObject* truths_along(Chain* self, int is_mean) {
    PyArrayObject *x = self->array[0], *made;
    npy_intp outer = 1, inner = 1, length = PyArray_DIM(x, self->item.axis);
    npy_int64* to;
    for (int k = 0; k < self->item.axis; k++) outer *= PyArray_DIM(x, k);
    for (int k = self->item.axis + 1; k < PyArray_NDIM(x); k++) inner *= PyArray_DIM(x, k);
    if (sizeof(npy_int64) != sizeof(double) || (made = raw_new(self->ndim, self->dims, is_mean ? NPY_DOUBLE : NPY_LONG, self->size)) == NULL) return NULL;
    truths_counted(PyArray_BYTES(x), outer, length, inner, to = (npy_int64*)PyArray_BYTES(made));
    for (npy_intp k = 0; is_mean && k < outer * inner; k++) {
        double mean = (double)to[k] / (double)length;
        memcpy(to + k, &mean, sizeof(mean));
    }
    return made;
}

static void divided_double(double* to, npy_intp n, double by) {
    for (npy_intp k = 0; k < n; k++) to[k] /= by;
}
static void divided_float(float* to, npy_intp n, float by) {
    for (npy_intp k = 0; k < n; k++) to[k] /= by;
}

/* Sums of `count` elements each become means; NULL where an error is raised. */
static PyArrayObject* means_of(PyArrayObject* sums, npy_intp count) {
    flags_clear(1);
    if (PyArray_TYPE(sums) == NPY_DOUBLE) divided_double((double*)PyArray_DATA(sums), PyArray_SIZE(sums), (double)count);
    else divided_float((float*)PyArray_DATA(sums), PyArray_SIZE(sums), (float)count);
    if (flags_raised(1)) Py_CLEAR(sums);
    return sums;
}

/* What a reduction has instead of sums. */
static inline int spread_as(const Function* of) { return of->kind == VARIANCE ? VARIANCES : of->kind == DEVIATION ? DEVIATIONS : SUMS_ALONE; }

static PyArrayObject* reduction_by_steps(Chain* self) {
    const Function* of = (Function*)self->item.call;
    npy_intp length = self->source[0] && WAITS(self->source[0]) && CHAIN_OF(self->source[0]) ? CHAIN_OF(self->source[0])->dims[self->item.axis] : 0;
    PyArrayObject* made = length ? rows_waiting(self, of->reduction, spread_as(of)) : NULL;
    return made && of->kind == MEAN ? means_of(made, length) : made;
}

/* The answers of calls along an axis that need nothing but loops; NULL, perhaps without an exception, as for `ByLoops`. */
static PyArrayObject* reduction_by_loops(Chain* self) {
    const Function* of = (Function*)self->item.call;
    PyArrayObject *x = self->array[0], *made;
    if (PyArray_ISBOOL(x) && sizeof(npy_long) == sizeof(npy_int64) && (of->kind == MEAN || of->reduces == SUMS) && of->reduction->from_zero) return truths_along(self, of->kind == MEAN);
    made = axis_spread(of->reduction, x, self->item.axis, self->item.keeps, 1, spread_as(of), self->item.off);
    return made && of->kind == MEAN ? means_of(made, PyArray_SIZE(x) / PyArray_SIZE(made)) : made;
}

static PyArrayObject* positions_by_loops(Chain* self) {
    return positions_along(self->array[0], self->item.axis, ((Function*)self->item.call)->direct == direct_argmax);
}

#define ROWS_FROM 8 /* elements of a row, from which on a call of the loop for each is worth its price */

static Loops* loops_of_ufunc(PyObject* ufunc);

/* `cumsum`, `cumprod` and `ufunc.accumulate`, of all elements (axis -1) or along an axis, as NumPy accumulates. */
static PyArrayObject* scan_by_loops(Chain* self) {
    const Function* of = (Function*)self->item.call;
    PyArrayObject *x = self->array[0], *made;
    Loops* loops = of->kind == OF_UFUNC ? loops_of_ufunc(self->item.args[0]) : &binary_loops[of->recorded == SCANS ? ADD : MUL];
    Loop* loop = loops && loops->nin == 2 && !loops->kernels ? loop_of(loops, PyArray_TYPE(x)) : NULL;
    npy_intp size = PyArray_ITEMSIZE(x), length = PyArray_SIZE(x), outer = 1, inner = size, row;
    int axis = self->item.axis, errors = 0;
    if (loop == NULL || loop->out != PyArray_TYPE(x) || self->at[0].step.out != loop->out || !PyArray_ISCARRAY_RO(x)) return NULL;
    if (axis >= 0) {
        length = PyArray_DIM(x, axis);
        for (int k = 0; k < PyArray_NDIM(x); k++) *(k < axis ? &outer : &inner) *= k == axis ? 1 : PyArray_DIM(x, k);
    }
    if ((made = step_room(self, 0)) == NULL) return NULL;
    row = length * inner;
    for (npy_intp o = 0; o < outer && errors >= 0; o++) {
        char *from = PyArray_BYTES(x) + o * row, *to = PyArray_BYTES(made) + o * row;
        memcpy(to, from, (size_t)inner);
        if (inner < ROWS_FROM * size) /* each column at a time */
            for (npy_intp at = 0; at < inner; at += size) errors |= run2(loop, to + at, from + at + inner, to + at + inner, length - 1, inner, inner, inner);
        else
            for (npy_intp k = 1; k < length; k++) errors |= run2(loop, to + (k - 1) * inner, from + k * inner, to + k * inner, inner / size, size, size, size);
    }
    if (errors < 0 || errors & self->minded) Py_CLEAR(made); /* made again, and told of */
    return made;
}

/* A reduction along an axis. */
static int reduction_call(Call* call, Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Read* x = &call->read[0];
    npy_intp dims[AXES];
    int ndim = 0, axis, keeps, type, off = 0, is_spread = self->kind == VARIANCE || self->kind == DEVIATION;
    if (!call_takes(call, args[0]) || (axis = call_axis(args, n, names, x->ndim, &keeps, is_spread ? &off : NULL)) < 0 || read_size(x) == 0) return 0;
    type = x->type;
    if (is_spread) {
        if (off >= x->dims[axis]) return 0; /* NumPy warns */
        if (type != NPY_DOUBLE && type != NPY_FLOAT) return 0;
    } else if (self->kind == MEAN) {
        if (type == NPY_BOOL || PyTypeNum_ISINTEGER(type)) type = NPY_DOUBLE;
    } else {
        switch (self->reduces) {
        case SUMS: type = sum_type(type); break;
        case EXTREMES: break;
        case TRUTHS_OF: type = NPY_BOOL; break;
        default: return 0;
        }
    }
    for (int k = 0; k < x->ndim; k++)
        if (k != axis || keeps) dims[ndim++] = k == axis ? 1 : x->dims[k];
    call_gives(call, type, ndim, dims);
    if (self->kind != MEAN || x->type == NPY_DOUBLE || x->type == NPY_FLOAT || x->type == NPY_BOOL) call->by_loops = reduction_by_loops, call->axis = axis, call->keeps = keeps, call->off = off;
    if (call->by_loops && (x->type == NPY_DOUBLE || x->type == NPY_FLOAT)) call->by_steps = reduction_by_steps;
    return 1;
}

/* A number beside arrays of `type`, as it changes the type of the result; -1 where NumPy has to say. */
static int beside_number(int type, PyObject* number) {
    Value value;
    if (PyFloat_CheckExact(number) && (type == NPY_BOOL || PyTypeNum_ISINTEGER(type))) return NPY_DOUBLE;
    if (PyLong_CheckExact(number) && type == NPY_BOOL) return value_of(number, NPY_LONG, &value) ? NPY_LONG : -1;
    return (PyFloat_CheckExact(number) || PyLong_CheckExact(number) || PyBool_Check(number)) && value_of(number, type, &value) ? type : -1;
}

/* The items of a list one behind the other; they have one dtype, else NumPy joins them. */
static PyArrayObject* joined_by_loops(Chain* self) {
    npy_intp rows = 1, bytes, across, inner;
    PyArrayObject* made;
    char* to;
    for (int k = 0; k < self->arrays; k++)
        if (PyArray_TYPE(self->array[k]) != self->at[0].step.out) return NULL;
    if ((made = raw_new(self->ndim, self->dims, self->at[0].step.out, self->size)) == NULL) return NULL;
    for (int k = 0; k < self->item.axis; k++) rows *= self->dims[k];
    to = PyArray_BYTES(made), across = self->size * PyArray_ITEMSIZE(made) / rows, inner = across / self->dims[self->item.axis];
    for (int k = 0; k < self->arrays; k++, to += bytes)
        if ((bytes = PyArray_DIM(self->array[k], self->item.axis) * inner)) rows_copied(to, across, PyArray_BYTES(self->array[k]), bytes, rows, bytes);
    return made;
}

/* `concatenate([...])` and `concatenate([...], axis)`; the list becomes a tuple, which is immutable. */
static int joined_call(Call* call, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    npy_intp dims[AXES], length = 0;
    PyObject** items = PySequence_Fast_ITEMS(args[0]);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(args[0]), total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    int axis = 0, type = -1, ndim;
    if (count == 0 || count > CHAIN_ARRAYS) return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!call_takes(call, items[k])) return 0;
        type = k ? common_type(type, call->read[k].type) : call->read[k].type;
        if (type < 0) return 0;
    }
    ndim = call->read[0].ndim;
    if (total == 2 && (n == 2 || PyTuple_GET_ITEM(names, 0) == axis_name)) axis = axis_of(args[1], ndim);
    else if (total > 1) return 0;
    if (axis < 0) return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        const Read* x = &call->read[k];
        if (x->ndim != ndim) return 0;
        for (int d = 0; d < ndim; d++)
            if (d != axis && x->dims[d] != call->read[0].dims[d]) return 0;
        length += x->dims[axis];
    }
    memcpy(dims, call->read[0].dims, (size_t)ndim * sizeof(npy_intp));
    dims[axis] = length;
    call_gives(call, type, ndim, dims);
    if (call->size) call->by_loops = joined_by_loops, call->axis = axis;
    return 1;
}

/* The number of a dtype that is named by an object; -1 where no code shall run to find it. */
static int dtype_number(PyObject* dtype) {
    PyArray_Descr* descr = NULL;
    int number = -1;
    if (dtype == (PyObject*)&PyFloat_Type) return NPY_DOUBLE;
    if (dtype == (PyObject*)&PyLong_Type) return NPY_LONG;
    if (dtype == (PyObject*)&PyBool_Type) return NPY_BOOL;
    if (PyUnicode_CheckExact(dtype)) {
        if (PyUnicode_GET_LENGTH(dtype) == 0 || PyUnicode_READ_CHAR(dtype, 0) > 127 || strchr("?bBhHiIlLqQfdeucFD", (int)PyUnicode_READ_CHAR(dtype, 0)) == NULL) return -1;
    } else if (!PyObject_TypeCheck(dtype, &PyArrayDescr_Type) && !(PyType_Check(dtype) && PyType_IsSubtype((PyTypeObject*)dtype, &PyGenericArrType_Type))) return -1;
    if (!PyArray_DescrConverter(dtype, &descr)) return PyErr_Clear(), -1;
    if (IS_NUMERIC(descr->type_num) && PyArray_ISNBO(descr->byteorder)) number = descr->type_num;
    Py_DECREF(descr);
    return number;
}

/* Whether an operand is one of steps that wait, or are computed at the call, and what it is. */
static inline int operand_shown(PyObject* x, Read* to) { return operand_read(x, to, NULL) || is_read_now(to); }

/* A cast or a copy as a step of a tape; NULL, perhaps without an exception, where it is none. */
static PyObject* cast_recorded(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Read read;
    int to;
    if (names || n != (self->kind == ASTYPE ? 2 : 1) || !operand_shown(args[0], &read) || read.type < 0) return NULL;
    to = self->kind == ASTYPE ? dtype_number(args[1]) : read.type;
    if (!IS_NUMERIC(to) || cast_loops[to].of[read.type].function == NULL) return NULL;
    return chain_step(&cast_loops[to], args[0], NULL);
}

static Loops clip_loops, low_loops, high_loops;

/* The ufuncs by which NumPy's `clip` clips on both sides, from below and from above. */
static void clip_fill(PyObject* both, PyObject* low, PyObject* high) {
    if (!PyObject_TypeCheck(both, &PyUFunc_Type) || ((PyUFuncObject*)both)->nin != 3) return;
    loops_fill(&clip_loops, both, 1), loops_fill(&low_loops, low, 1), loops_fill(&high_loops, high, 1);
}

/* `clip(a, low, high)` as a step, of which one bound may be None; NULL, perhaps without an exception, where it is none. */
static PyObject* clip_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject* bound;
    Loops* loops;
    Read read;
    if (names || n != 3 || clip_loops.ufunc == NULL || !operand_shown(args[0], &read) || read.type < 0) return NULL;
    for (int k = 1; k < 3; k++)
        if (args[k] != Py_None && Py_TYPE(args[k]) != array_type && (!is_number(args[k]) || beside_number(read.type, args[k]) != read.type)) return NULL;
    if (args[1] != Py_None && args[2] != Py_None) return clip_loops.of[read.type].function ? step_recorded(&clip_loops, args) : NULL;
    bound = args[1] == Py_None ? args[2] : args[1];
    if (Py_TYPE(bound) == array_type || bound == Py_None) return NULL;
    loops = bound == args[1] ? &low_loops : &high_loops;
    return loops->of[read.type].function ? chain_step(loops, args[0], bound) : NULL;
}

/* `round(a, decimals)` of floats as steps, NumPy's: between a product and a quotient, or the other way round, where there are decimals.  NULL, perhaps
   without an exception, where it is none. */
static PyObject* round_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    static const double tens[] = {1, 10, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    PyObject *power, *scaled, *whole, *found = NULL;
    long decimals;
    Read read;
    if (n + (names ? PyTuple_GET_SIZE(names) : 0) > 2 || n < 1 || (names && PyTuple_GET_SIZE(names) && !is_named(names, "decimals"))) return NULL;
    if (!operand_shown(args[0], &read) || (read.type != NPY_DOUBLE && read.type != NPY_FLOAT) || read_size(&read) == 0) return NULL;
    if (n == 1 && (names == NULL || PyTuple_GET_SIZE(names) == 0)) return chain_step(&round_loops, args[0], NULL);
    if (!PyLong_CheckExact(args[1])) return NULL;
    decimals = PyLong_AsLong(args[1]);
    if (decimals == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
    if (decimals == 0) return chain_step(&round_loops, args[0], NULL);
    if (read.array && !PyArray_IS_C_CONTIGUOUS(read.array)) return NULL; /* the result lies in C's order, or in Fortran's */
    if (decimals < -8 || decimals > 8 || (power = PyFloat_FromDouble(tens[labs(decimals)])) == NULL) return NULL;
    scaled = chain_step(&binary_loops[decimals > 0 ? MUL : DIV], args[0], power);
    whole = scaled ? chain_step(&round_loops, scaled, NULL) : NULL;
    if (whole) found = chain_step(&binary_loops[decimals > 0 ? DIV : MUL], whole, power);
    Py_XDECREF(scaled), Py_XDECREF(whole), Py_DECREF(power);
    return found;
}

/* How `roll(a, shift, axis)` moves an array in C's order: blocks of `length` times `inner` bytes, by `shift`. */
typedef struct {
    npy_intp length, inner, shift;
} Roll;

/* 0 where NumPy has to see to it. */
static int roll_of(Roll* of, int ndim, const npy_intp* dims, npy_intp inner, PyObject* const* args, Py_ssize_t total, PyObject* names) {
    PyObject* axis = total == 3 ? args[2] : Py_None;
    int at = axis == Py_None ? 0 : axis_of(axis, ndim), overflow;
    long long shift;
    if (total < 2 || total > 3 || !PyLong_CheckExact(args[1]) || at < 0) return 0;
    if (names && PyTuple_GET_SIZE(names) && (total < 3 || PyTuple_GET_SIZE(names) != 1 || !is_named(names, "axis"))) return 0;
    shift = PyLong_AsLongLongAndOverflow(args[1], &overflow);
    if (overflow) return 0;
    of->length = 1, of->inner = inner;
    for (int k = at; k < ndim; k++) *(k == at || axis == Py_None ? &of->length : &of->inner) *= dims[k];
    if (of->length == 0) return 0;
    of->shift = (npy_intp)(shift % of->length);
    of->shift += of->shift < 0 ? of->length : 0;
    return 1;
}

static PyArrayObject* roll_by_loops(Chain* self) {
    PyArrayObject *x = self->array[0], *made;
    npy_intp block, kept, rows, size = PyArray_ITEMSIZE(x);
    Roll of;
    if (!roll_of(&of, self->ndim, self->dims, size, self->item.args, self->item.total, self->item.names)) return NULL;
    if ((made = raw_new(self->ndim, self->dims, self->at[0].step.out, self->size)) == NULL) return NULL;
    block = of.length * of.inner, kept = block - of.shift * of.inner;
    rows = self->size * size / block;
    char *from = PyArray_BYTES(x), *to = PyArray_BYTES(made);
    rows_copied(to + block - kept, block, from, block, rows, kept);
    if (kept < block) rows_copied(to, block, from + kept, block, rows, block - kept);
    return made;
}

/* `roll` of an array; where no axis is given NumPy returns a view of the result.  NULL, perhaps without an exception, where it is not recorded so. */
static PyObject* roll_recorded(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject* made = NULL;
    Call call;
    Begun begun;
    Roll of;
    call_begins(&call), call.silent = 1;
    if (!recording_begin(&begun)) return NULL;
    if (call_takes(&call, args[0]) && (call.read[0].ndim == 1 || (total == 3 && args[2] != Py_None)) && read_size(&call.read[0]) && roll_of(&of, call.read[0].ndim, call.read[0].dims, 1, args, total, names)) {
        call_gives(&call, call.read[0].type, call.read[0].ndim, call.read[0].dims);
        call.by_loops = roll_by_loops;
        if (call_fits(&call)) made = call_waits(&call, &begun, function_answer, (PyObject*)self, args, n, names, 0);
    }
    made = call_made(&call, recording_end(&begun, made));
    if (made && (total < 3 || args[2] == Py_None)) Py_SETREF(made, PyObject_GetItem(made, Py_Ellipsis));
    return made;
}

/* Calls whose answer is like their operand, but for its dtype: casts, scans, sorts. */
static int like_call(Call* call, Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Read* x = &call->read[0];
    int type, axis, keeps = 0;
    npy_intp size;
    if (!call_takes(call, args[0]) || (size = read_size(x)) == 0) return 0;
    type = x->type;
    switch (self->kind == ASTYPE ? CASTS_TO : self->recorded) {
    case CASTS_TO:
        if (names || n != 2 || (PyTypeNum_ISCOMPLEX(type) && !PyTypeNum_ISCOMPLEX(dtype_number(args[1]))) || (type = dtype_number(args[1])) < 0 || type == NPY_LONGDOUBLE || type == NPY_CLONGDOUBLE) return 0;
        break;
    case COPIES:
        if (names || n != 1) return 0;
        break;
    case SCANS:
    case SCANS_PRODUCTS:
        type = sum_type(type), axis = -1;
        if ((n != 1 || names) && ((axis = call_axis(args, n, names, x->ndim, &keeps, NULL)) < 0 || keeps)) return 0;
        call_gives(call, type, axis < 0 ? 1 : x->ndim, axis < 0 ? &size : x->dims);
        call->by_loops = scan_by_loops, call->axis = axis;
        return 1;
    case SORTS:
    case SORTS_POSITIONS:
        if (n != 1 || names) {
            if (call_axis(args, n, names, x->ndim, &keeps, NULL) < 0 || keeps) return 0;
        }
        if (self->recorded == SORTS_POSITIONS) type = NPY_INTP;
        break;
    case ROUNDS:
        if (names || n > 2 || (n == 2 && axis_of(args[1], 16) < 0) || !PyTypeNum_ISFLOAT(type)) return 0;
        break;
    case ARG_EXTREMES: {
        npy_intp dims[AXES];
        int ndim = 0;
        if (PyTypeNum_ISCOMPLEX(type) || (axis = call_axis(args, n, names, x->ndim, &keeps, NULL)) < 0 || keeps) return 0;
        for (int k = 0; k < x->ndim; k++)
            if (k != axis) dims[ndim++] = x->dims[k];
        call_gives(call, NPY_INTP, ndim, dims);
        call->by_loops = positions_by_loops, call->axis = axis;
        return 1;
    }
    default:
        return 0;
    }
    call_gives(call, type, x->ndim, x->dims);
    return 1;
}

/* The product of all pairs. */
static int outer_call(Call* call, PyObject* const* args) {
    npy_intp dims[2];
    if (!call_takes_any(call, args[0]) || !call_takes_any(call, args[1]) || call->read[0].ndim != 1 || call->read[1].ndim != 1) return 0;
    if (call->count < 2 || call->read[0].type != call->read[1].type || call->read[0].type == NPY_BOOL) return 0;
    dims[0] = call->read[0].dims[0], dims[1] = call->read[1].dims[0];
    call_gives(call, call->read[0].type, 2, dims);
    return 1;
}

/* Whether a call is one of those that are recorded, at first sight. */
static inline int may_be_recorded(const Function* self, PyObject* const* args, Py_ssize_t n, Py_ssize_t total) {
    if (n == 0 || total > ITEM_ARGS || limit_now() == 0) return 0;
    switch (self->kind) {
    case REDUCTION: case MEAN: case VARIANCE: case DEVIATION: return total > 1 && Py_TYPE(args[0]) == array_type;
    case WHERE: return n == 3 && total == 3;
    case JOINED: return IS_LIST(args[0]) && !PyRange_Check(args[0]);
    case ASTYPE: return n == 2 && Py_TYPE(args[0]) == array_type;
    case PRODUCT: return n == 2 && total == 2;
    case DOT: return n == 2 && total == 2 && axes_of(args[0]) + axes_of(args[1]) > 2;
    default: return self->recorded && (Py_TYPE(args[0]) == array_type || self->recorded == SELECTS);
    }
}

/* The method: real numbers are their own conjugates. */
static PyObject* conjugate_recorded(PyObject* a) {
    Read read;
    if (!operand_shown(a, &read)) return NULL;
    return PyTypeNum_ISCOMPLEX(read.type) ? chain_step(&conjugate_loops, a, NULL) : Py_NewRef(a);
}

/* `a[..., from:to]` of an axis. */
static PyObject* part_along(PyObject* a, int axis, PyObject* from, PyObject* to) {
    PyObject *key = PyTuple_New(axis + 1), *slice, *part = NULL;
    for (int k = 0; key && k <= axis; k++) {
        if ((slice = k < axis ? PySlice_New(NULL, NULL, NULL) : PySlice_New(from, to, NULL))) PyTuple_SET_ITEM(key, k, slice);
        else Py_CLEAR(key);
    }
    if (key) part = PyObject_GetItem(a, key);
    Py_XDECREF(key);
    return part;
}

/* `diff` of one axis, once: a difference of two parts; NULL, perhaps without an exception, where it is not recorded so. */
static PyObject* diff_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *one = PyLong_FromLong(1), *other = PyLong_FromLong(-1), *later = NULL, *before = NULL, *made = NULL;
    Read x;
    int fits = one && other && operand_shown(args[0], &x) && x.type > NPY_BOOL && x.ndim > 0, axis = fits ? x.ndim - 1 : -1, overflow;
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t k = 1; fits && k < total; k++) {
        PyObject* name = k < n ? NULL : PyTuple_GET_ITEM(names, k - n);
        if (name == axis_name ? n < 3 : name == NULL && k == 2) fits = (axis = axis_of(args[k], x.ndim)) >= 0;
        else fits = (name ? n < 2 && PyUnicode_CompareWithASCIIString(name, "n") == 0 : k == 1) && PyLong_CheckExact(args[k]) && PyLong_AsLongAndOverflow(args[k], &overflow) == 1;
    }
    if (fits && x.dims[axis] > 1) later = part_along(args[0], axis, one, NULL);
    if (later) before = part_along(args[0], axis, NULL, other);
    if (before) made = PyNumber_Subtract(later, before);
    Py_XDECREF(one), Py_XDECREF(other), Py_XDECREF(later), Py_XDECREF(before);
    return made;
}

/* Whether NumPy tells of no floating-point errors of a function, whatever it is given. */
static int is_silent(const Function* self) {
    switch (self->kind) {
    case WHERE: case JOINED: case DOT: return 1;
    case REDUCTION: return self->reduces == EXTREMES || self->reduces == TRUTHS_OF;
    case MEAN: case VARIANCE: case DEVIATION: case PRODUCT: case ASTYPE: return 0;
    default: return self->recorded == COPIES || self->recorded == SORTS || self->recorded == SORTS_POSITIONS || self->recorded == ARG_EXTREMES;
    }
}

/* The lengths that `reshape` is given, of which one may be left to it: how many; 0 where NumPy has to see to it. */
static int lengths_given(PyObject* const* lengths, Py_ssize_t n, npy_intp size, npy_intp* dims) {
    npy_intp known = 1;
    int open = -1;
    if (n == 1 && PyTuple_CheckExact(lengths[0])) n = PyTuple_GET_SIZE(lengths[0]), lengths = &PyTuple_GET_ITEM(lengths[0], 0);
    if (n == 0 || n > RAW_AXES) return 0;
    for (int k = 0; k < n; k++) {
        if (!integer_of(lengths[k], &dims[k]) || dims[k] < -1 || dims[k] == 0 || dims[k] > size || (dims[k] == -1 && open >= 0)) return 0;
        if (dims[k] == -1) open = k;
        else known *= dims[k];
        if (known > size) return 0;
    }
    if (open >= 0) {
        if (size % known) return 0;
        dims[open] = size / known;
    }
    return (int)n;
}

/* A view of what waits, which waits, too; NULL, perhaps without an exception, where it is none, or made now. */
static PyObject* function_view(Function* self, PyObject* const* args, Py_ssize_t n) {
    PyObject *a = args[0], *callable = (PyObject*)self;
    npy_intp dims[RAW_AXES + 1], all;
    Raw shadow;
    Place at;
    int ndim, one = -1, two;
    if (!shadow_of(a, &shadow)) return NULL;
    ndim = shadow.fields.nd, all = CHAIN_OF(a)->size;
    if (self->kind == RESHAPE)
        return (n == 2 || (n > 2 && Py_IS_TYPE(self->theirs, &PyMethodDescr_Type))) && (one = lengths_given(args + 1, n - 1, all, dims)) ? reshape_waits(a, one, dims, callable, args, n) : NULL;
    if (n == 1 && self->direct == direct_ravel) return reshape_waits(a, 1, &all, callable, args, n);
    if (n == 1 && self->direct == direct_transpose) return ndim > 1 ? transpose_waits(a, callable) : NULL;
    at.ndim = 0, at.data = shadow.fields.data;
    for (int k = 0; k < ndim; k++) at.dims[k] = shadow.lengths[k], at.strides[k] = shadow.lengths[RAW_AXES + k];
    if (n == 1 && self->direct == direct_squeeze) {
        for (int k = 0; k < ndim; k++)
            if (at.dims[k] != 1) at.dims[at.ndim] = at.dims[k], at.strides[at.ndim++] = at.strides[k];
        return at.ndim == ndim ? Py_NewRef(a) : view_waits(&at, callable, args, n); /* without axes it is computed */
    }
    switch (self->recorded) {
    case EXPANDS:
        if (n != 2 || ndim >= RAW_AXES || (one = axis_of(args[1], ndim + 1)) < 0) return NULL;
        for (int k = 0; k <= ndim; k++) dims[k] = k == one ? 1 : shadow.lengths[k < one ? k : k - 1];
        return reshape_waits(a, ndim + 1, dims, callable, args, n);
    case SWAPS_AXES:
        if (n != 3 || (one = axis_of(args[1], ndim)) < 0 || (two = axis_of(args[2], ndim)) < 0) return NULL;
        at.dims[one] = shadow.lengths[two], at.dims[two] = shadow.lengths[one];
        at.strides[one] = shadow.lengths[RAW_AXES + two], at.strides[two] = shadow.lengths[RAW_AXES + one], at.ndim = ndim;
        break;
    case FLIPS:
        if (n > 2 || (n == 2 && (one = axis_of(args[1], ndim)) < 0)) return NULL;
        for (int k = 0; k < ndim; k++)
            if (n == 1 || k == one) at.data += at.strides[k] * (at.dims[k] - 1), at.strides[k] = -at.strides[k];
        at.ndim = ndim;
        break;
    default: return NULL;
    }
    return view_waits(&at, callable, args, n);
}

#endif
