/* Subscripts: `x[key]` and `x[key] = value`.

   In: an array, and a key.  Out: an element, a view, what a mask or positions choose; or that the method in Python must be asked.  Promise: what is read or written lies within the memory; what
   reads that memory is computed before it is written. */

#ifndef LAZYNP_SUBSCRIPTS_H
#define LAZYNP_SUBSCRIPTS_H

#include "operators.h"

/* Subscripts ------------------------------------------------------------------------------------------------------------------- */

static inline int is_list_of_numbers(PyObject* key) {
    if (!PyList_CheckExact(key)) return 0;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(key); k++)
        if (!is_number(PyList_GET_ITEM(key, k))) return 0;
    return 1;
}

/* One part of a key as NumPy takes it (borrowed); NULL where that is for the method in Python to find out. */
static inline PyObject* key_part(PyObject* key) {
    PyTypeObject* type = Py_TYPE(key);
    if (type == &PyLong_Type || type == &PySlice_Type || key == Py_None || key == Py_Ellipsis) return key;
    if (type == array_type) return (PyObject*)memory_of(key);
    if (type == &PyArray_Type) return native_dtype((PyArrayObject*)key) ? key : NULL;
    return is_number(key) || is_list_of_numbers(key) ? key : NULL;
}

/* A key as NumPy takes it (a new reference); NULL without an exception as above. */
static inline PyObject* numpys_key(PyObject* key) {
    PyObject *part, *made;
    Py_ssize_t k, n;
    int same = 1;
    if (!PyTuple_CheckExact(key)) {
        part = key_part(key);
        return Py_XNewRef(part);
    }
    n = PyTuple_GET_SIZE(key);
    for (k = 0; k < n; k++) {
        part = key_part(PyTuple_GET_ITEM(key, k));
        if (part == NULL) return NULL;
        same &= part == PyTuple_GET_ITEM(key, k);
    }
    if (same) return Py_NewRef(key);
    made = PyTuple_New(n);
    if (made == NULL) return NULL;
    for (k = 0; k < n; k++) { /* once more: making the tuple may have run code, which may have written to a list */
        if ((part = key_part(PyTuple_GET_ITEM(key, k))) == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        PyTuple_SET_ITEM(made, k, Py_NewRef(part));
    }
    return made;
}

/* Whether a key with index arrays selects few elements of `x`, whatever they are. */
static int selects_few(PyArrayObject* x, PyObject* key) {
    PyObject* one[1] = {key};
    PyObject** parts = PyTuple_CheckExact(key) ? &PyTuple_GET_ITEM(key, 0) : one;
    Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    npy_intp size = 1, points = 1, longest = 1, limit = limit_now();
    int axis = 0, ndim = PyArray_NDIM(x), arrays = 0, rows = 1; /* rows of positions go together, others are broadcast */
    for (Py_ssize_t k = 0; k < n && axis < ndim; k++) {
        PyObject* part = parts[k];
        if (PyArray_CheckExact(part)) {
            PyArrayObject* index = (PyArrayObject*)part;
            points *= PyArray_SIZE(index);
            if (PyArray_SIZE(index) > longest) longest = PyArray_SIZE(index);
            rows &= PyArray_NDIM(index) < 2 || PyArray_ISBOOL(index);
            axis += PyArray_ISBOOL(index) ? PyArray_NDIM(index) : 1;
            arrays++;
        } else if (PyList_CheckExact(part)) {
            points *= PyList_GET_SIZE(part), rows = 0;
            axis++, arrays++;
        } else if (PySlice_Check(part)) {
            size *= PyArray_DIM(x, axis++);
        } else if (PyLong_CheckExact(part)) {
            axis++;
        } else if (part != Py_None) {
            return 0;
        }
        if (size > limit || longest > limit || (!rows && points > limit)) return 0;
        if (points > limit) points = limit + 1;
    }
    size *= rows ? longest : points;
    for (; axis < ndim; axis++) size *= PyArray_DIM(x, axis);
    return arrays && size <= limit;
}

/* `a[key]` with index arrays that select few elements of a large array; NULL as for `large_getitem`. */
static PyObject* large_gathered(PyObject* a, PyObject* key) {
    PyArrayObject *from, *memory;
    PyObject *plain, *found = NULL, *given;
    Cell* root;
    int own;
    if ((from = seen_memory(a, &root, &memory, &own)) == NULL) return NULL;
    Py_INCREF(from);
    plain = numpys_key(key);
    if (plain && selects_few(from, plain)) {
        found = PyArray_CheckExact(plain) ? chosen(from, plain, (PyArrayObject*)plain, 0) : NULL;
        if (found == NULL && !PyErr_Occurred()) found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject*)from, plain);
    }
    Py_DECREF(from), Py_XDECREF(plain);
    if (found == NULL || !PyArray_CheckExact(found)) return number_of(found);
    if (PyArray_BASE((PyArrayObject*)found)) {
        Py_DECREF(found);
        return NULL;
    }
    if (PyArray_SIZE((PyArrayObject*)found) <= limit_now()) return cell_of(found, NULL);
    given = PyTuple_New(0);
    plain = given ? PyObject_CallFunctionObjArgs(result_method, found, given, NULL) : NULL;
    Py_XDECREF(given), Py_DECREF(found);
    return plain;
}

/* Where the element lies that plain integers name; NULL for all other keys, and where NumPy has to see to it. */
static inline char* element_at(PyArrayObject* x, PyObject* key) {
    int ndim = PyArray_NDIM(x);
    char* at = PyArray_BYTES(x);
    PyObject** parts = &key;
    if (PyTuple_CheckExact(key)) {
        if (PyTuple_GET_SIZE(key) != ndim) return NULL;
        parts = &PyTuple_GET_ITEM(key, 0);
    } else if (ndim != 1) {
        return NULL;
    }
    for (int k = 0; k < ndim; k++) {
        npy_intp index, length = PyArray_DIM(x, k);
        if (PyLong_CheckExact(parts[k])) {
            index = PyLong_AsSsize_t(parts[k]);
            if (index == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
        } else if (IS_A(parts[k], NPY_LONG)) {
            index = PyArrayScalar_VAL(parts[k], Long);
        } else {
            return NULL;
        }
        if (index < 0) index += length;
        if (index < 0 || index >= length) return NULL;
        at += index * PyArray_STRIDE(x, k);
    }
    return PyArray_ISBEHAVED_RO(x) ? at : NULL;
}

static inline PyObject* element(PyArrayObject* x, char* at) { return number_read(at, PyArray_DESCR(x), (PyObject*)x); }

/* The view of `a` that a place in its memory is; NULL, perhaps without an exception, where NumPy has to make it. */
static PyObject* viewed(PyObject* a, PyArrayObject* x, int ndim, const npy_intp* dims, const npy_intp* strides, char* data) {
    PyArrayObject* made;
    if (!IS_RAW(x) && ((Cell*)a)->lent) is_own((Cell*)a); /* as long as there is no view */
    PyObject *owner = owner_of(a), *found;
    made = raw_view(x, ndim, dims, strides, data);
    found = made ? cell_of((PyObject*)made, owner) : NULL;
    if (owner != a) part_view = found, part_parent = found ? a : NULL;
    return found;
}

static PyObject* getitem_waits(PyObject* a, PyObject* key);
static PyObject* transpose_waits(PyObject* a, PyObject* callable);
static PyObject* transpose_callable; /* what reads `T` */
static PyObject* slot_getitem(PyObject* a, PyObject* key) {
    PyArrayObject* x;
    PyObject *plain, *found, *base;
    char* at;
    Place place;
    if (IS_CHAIN(a) && ((found = getitem_waits(a, key)) || PyErr_Occurred())) return found;
    if (waiting_count && (settle_operand(a) < 0 || settle_key(key) < 0)) return NULL;
    if ((x = plain_of(a))) {
        if (may_choose(key)) {
            PyArrayObject* by = plain_of(key);
            if ((found = chosen(x, key, by, 1))) return cell_of(found, NULL);
            if (PyErr_Occurred()) return NULL;
        } else if ((at = element_at(x, key))) {
            return element(x, at);
        } else if (place_of(x, key, &place) && ((found = viewed(a, x, place.ndim, place.dims, place.strides, place.data)) || PyErr_Occurred())) {
            return found;
        }
    }
    x = is_large(a) ? stored(a) : memory_of(a);
    at = x ? element_at(x, key) : NULL;
    if (at) return element(x, at);
    if (is_large(a)) {
        found = is_basic(key) ? large_getitem(a, key) : large_gathered(a, key);
        return found || PyErr_Occurred() ? found : slow2(slow_methods[GETITEM], a, key);
    }
    if (x == NULL) return slow2(slow_methods[GETITEM], a, key);
    if (((Cell*)a)->lent) is_own((Cell*)a); /* as long as there is no view */
    Py_INCREF(x);
    if ((plain = numpys_key(key)) == NULL) {
        Py_DECREF(x);
        return PyErr_Occurred() ? NULL : slow2(slow_methods[GETITEM], a, key);
    }
    found = PyArray_CheckExact(plain) ? chosen(x, plain, (PyArrayObject*)plain, 0) : NULL;
    if (found == NULL && !PyErr_Occurred()) found = subscript(x, plain);
    Py_DECREF(plain);
    if (found && PyArray_CheckExact(found)) {
        base = PyArray_BASE((PyArrayObject*)found);
        if (base && (base == (PyObject*)x || base == PyArray_BASE(x))) found = cell_of(found, owner_of(a));
        else if (PyArray_SIZE((PyArrayObject*)found) <= PyArray_SIZE(x) || PyArray_SIZE((PyArrayObject*)found) <= limit_now()) found = cell_of(found, base);
        else Py_SETREF(found, slow2(slow_methods[GETITEM], a, key));
    }
    Py_DECREF(x);
    return number_of(found);
}

/* Whether `a[key]` is what `value`, a part of the same array, shows: the end of `a[key] += ...`, which has written there already. */
static int is_put_back(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject *from, *memory, *shown;
    PyObject* found;
    Cell* root;
    int own, same;
    if (!is_part(value) || ((Cell*)a)->readonly != Py_False || !is_basic(key)) return 0;
    if ((from = large_memory(a, &root, &memory, &own)) == NULL || ((Cell*)value)->base != (PyObject*)root) return 0;
    if ((shown = part_shown((Cell*)value, &own)) == NULL) return 0;
    Py_INCREF(from), Py_INCREF(shown);
    found = subscript(from, key);
    if (found == NULL) PyErr_Clear(); /* Python says what is wrong */
    same = found && PyArray_CheckExact(found) && same_place((PyArrayObject*)found, shown);
    Py_XDECREF(found), Py_DECREF(from), Py_DECREF(shown);
    return same;
}

/* The memory of an array of ours, or of NumPy's, that exists. */
static inline PyArrayObject* known_of(PyObject* value) {
    PyArrayObject* y = plain_of(value);
    return y ? y : foreign_of(value);
}

/* `x[key] = value` of integers and slices, or of positions or truth values, of a number or of an array in memory: whether it was written.
   No code of a program's runs. */
static int written_plainly(PyArrayObject* x, PyObject* key, PyObject* value) {
    PyArrayObject* y = known_of(value);
    Value number;
    char* at;
    if (y == NULL && !is_number(value)) return 0;
    if (may_choose(key)) return chosen_written(x, key, plain_of(key), value, y);
    if (y || !is_writable(x) || (at = element_at(x, key)) == NULL || !value_of(value, PyArray_TYPE(x), &number)) return assigned(x, key, value, y, 0);
    memcpy(at, &number, (size_t)PyArray_ITEMSIZE(x));
    return 1;
}

/* Whether nothing but the cell has the memory, nor waits for its value: then nothing that waits reads it. */
static inline int is_unread(const Cell* a, PyArrayObject* x) {
    if (Py_REFCNT(x) != 1 || a->readers || a->view != Py_None) return 0;
    return IS_RAW(x) ? is_bare(x) : Py_TYPE(x) == &PyArray_Type && PyArray_CHKFLAGS(x, NPY_ARRAY_OWNDATA);
}

/* The same of an array while something waits, of which only what reads the memory is computed; 0, perhaps with an exception, where all of it has to be. */
static int written_beside(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject* x;
    int done;
    if (faded_count || settle_operand(a) < 0 || settle_key(key) < 0 || settle_operand(value) < 0) return 0;
    if ((x = plain_of(a)) == NULL || (known_of(value) == NULL && !is_number(value))) return 0;
    if (is_unread((Cell*)a, x)) return written_plainly(x, key, value);
    Py_INCREF(x); /* handlers of warnings may run, and have others in the place of these */
    done = readers_settle(x) == 0 && !IS_CHAIN(a) && !IS_CHAIN(key) && !IS_CHAIN(value) && plain_of(a) == x && written_plainly(x, key, value);
    Py_DECREF(x);
    return done;
}

#define ROW 64 /* numbers in a list that is written as an array of them */

static inline int is_bound(PyObject* x) { return x == Py_None || PyLong_CheckExact(x); }

/* The doubles of a list or tuple of floats and ints that fill a row of `x`, or a part of a vector; else NULL, without an exception. */
static PyObject* row_of(PyArrayObject* x, PyObject* key, PyObject* value) {
    int list = PyList_CheckExact(value);
    Py_ssize_t k, n, start, stop, step;
    PyObject* row;
    if ((!list && !PyTuple_CheckExact(value)) || PyArray_TYPE(x) != NPY_DOUBLE || !PyArray_ISNOTSWAPPED(x)) return NULL;
    n = list ? PyList_GET_SIZE(value) : PyTuple_GET_SIZE(value);
    if (n == 0 || n > ROW) return NULL;
    if (PyLong_CheckExact(key) && PyArray_NDIM(x) == 2) {
        if (PyArray_DIM(x, 1) != n) return NULL;
    } else if (PySlice_Check(key) && PyArray_NDIM(x) == 1) {
        const PySliceObject* slice = (PySliceObject*)key;
        if (!is_bound(slice->start) || !is_bound(slice->stop) || !is_bound(slice->step)) return NULL; /* else code of a program's would run */
        if (PySlice_Unpack(key, &start, &stop, &step) < 0) return PyErr_Clear(), NULL;
        if (PySlice_AdjustIndices(PyArray_DIM(x, 0), &start, &stop, step) != n) return NULL;
    } else {
        return NULL;
    }
    for (k = 0; k < n; k++) {
        PyObject* item = list ? PyList_GET_ITEM(value, k) : PyTuple_GET_ITEM(value, k);
        if (!PyFloat_CheckExact(item) && !PyLong_CheckExact(item)) return NULL;
    }
    row = PyArray_FROM_OTF(value, NPY_DOUBLE, NPY_ARRAY_DEFAULT);
    if (row == NULL) PyErr_Clear(); /* an integer beyond all doubles, which NumPy refuses at the write */
    return row;
}

static int slot_setitem(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject *x, *y;
    PyObject *plain = NULL, *found;
    int failed, tried, lent = 0;
    if (value && (PyTuple_CheckExact(value) || PyList_CheckExact(value))) {
        if (waiting_count && settle_operand(a) < 0) return -1;
        if ((x = plain_of(a)) && (found = row_of(x, key, value))) {
            failed = slot_setitem(a, key, found);
            Py_DECREF(found);
            return failed;
        }
    }
    if (waiting_count && value && (copied_into(a, key, value) || (!PyErr_Occurred() && masked_into(a, key, value)) || (!PyErr_Occurred() && put_into(a, key, value)) || (!PyErr_Occurred() && large_put_into(a, key, value)) || (!PyErr_Occurred() && written_beside(a, key, value)))) return 0;
    if (PyErr_Occurred() || !SETTLED) return -1;
    if (value == NULL) {
        found = slow2(slow_methods[DELITEM], a, key);
        Py_XDECREF(found);
        return found ? 0 : -1;
    }
    if ((x = plain_of(a)) && written_plainly(x, key, value)) return 0;
    tried = x != NULL && (is_number(value) || plain_of(value)); /* to no avail */
    if ((y = memory_of(value)) == NULL) y = foreign_of(value);
    if (y == NULL && is_number(value)) {
        Value number;
        char* at;
        Cell* root;
        int own = 1;
        x = is_large(a) && ((Cell*)a)->readonly == Py_False ? large_memory(a, &root, &y, &own) : NULL;
        if (x && own && (at = element_at(x, key)) && value_of(value, PyArray_TYPE(x), &number)) {
            memcpy(at, &number, (size_t)PyArray_ITEMSIZE(x));
            return 0;
        }
        y = NULL;
    }
    if (y == NULL && is_large(a) && (y = read_memory(value))) lent = is_large_lent(value);
    if (is_large(a) && (y || is_number(value))) {
        failed = large_setitem(a, key, y ? (PyObject*)y : value, y, lent);
        if (failed == 0 && y && is_basic(key) && (is_part(a) || !is_all_of(key)) && large_owned(a, size_of(y), lent)) {
            if ((y = memory_of(value)) == NULL) y = read_memory(value);
            failed = y ? large_setitem(a, key, (PyObject*)y, y, lent) : 0;
        }
        if (failed || PyErr_Occurred()) return failed < 0 || PyErr_Occurred() ? -1 : 0;
    } else if (is_large(a) && is_put_back(a, key, value)) {
        return 0;
    }
    x = own_memory_of(a);
    if (x && !tried && (y || is_number(value)) && assigned(x, key, value, y, 0)) return 0;
    if (x == NULL && is_large(a) && (y || is_number(value)) && ((Cell*)a)->readonly == Py_False) {
        PyArrayObject* memory;
        Cell* root;
        int own; /* places are written in large memory that nothing else sees as they are in small */
        x = large_memory(a, &root, &memory, &own);
        if (x && (!own || is_basic(key))) x = NULL;
        if (x) PyArray_ENABLEFLAGS(x, NPY_ARRAY_WRITEABLE);
    }
    if (x && (y || is_number(value))) {
        PyObject* from = y ? (PyObject*)y : value;
        Cell* written = writing_begin(a);
        Py_INCREF(x), Py_INCREF(from);
        if ((plain = numpys_key(key)) == NULL) failed = 1;
        else if (PyArray_CheckExact(plain) && chosen_written(x, plain, (PyArrayObject*)plain, from, y)) failed = 0;
        else failed = PyArray_Type.tp_as_mapping->mp_ass_subscript((PyObject*)x, plain, from);
        writing_end(written);
        Py_DECREF(x), Py_DECREF(from), Py_XDECREF(plain);
        if (failed < 1) return failed;
    }
    if (PyErr_Occurred()) return -1;
    if (slow_methods[SETITEM] == NULL) {
        PyErr_SetString(PyExc_TypeError, "does not support item assignment");
        return -1;
    }
    PyObject* args[3] = {a, key, value};
    found = PyObject_Vectorcall(slow_methods[SETITEM], args, 3, NULL);
    Py_XDECREF(found);
    return found ? 0 : -1;
}

#endif
