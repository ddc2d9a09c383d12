/* What a function of the table gives at its call.

   In: a function, and a call whose arguments lie in memory.  Out: NumPy's answer, or that of the function's own C code.  Promise: NULL without an exception where the function in Python
   must be asked. */

#ifndef LAZYNP_ANSWERS_H
#define LAZYNP_ANSWERS_H

#include "asked.h"

/* What an array that exists holds, for a number that all its elements make (borrowed); NULL for all others: of more, and of what is read from files, kernels go piece by piece. */
static inline PyArrayObject* existing_memory(PyObject* x) {
    PyArrayObject *found = memory_of(x), *memory;
    Cell* root;
    int own;
    if (found || Py_TYPE(x) != array_type) return found;
    found = large_memory(x, &root, &memory, &own);
    return found && size_of(found) <= first_limit() && !is_mapped(root) ? found : NULL;
}

/* Whether there is a large array among the arguments of a call, or in a list of them (`deep`). */
static int any_large(PyObject* const* args, Py_ssize_t n, int deep) {
    for (Py_ssize_t k = 0; k < n; k++) {
        PyArrayObject* x = Py_TYPE(args[k]) == array_type ? seen_of(args[k]) : NULL;
        if (x && size_of(x) > limit_now()) return 1;
        if (deep && IS_ROW(args[k]) && PySequence_Fast_GET_SIZE(args[k]) <= MOST && any_large(PySequence_Fast_ITEMS(args[k]), PySequence_Fast_GET_SIZE(args[k]), 0)) return 1;
    }
    return 0;
}

static PyObject* soon_name;
#define DRAWS 16        /* calls that are counted at a time */
#define DRAWS_MANY 4096 /* numbers that may count as more */
enum { DRAWS_SOONER = -1 };

static inline int draws_many(PyObject* x) {
    int overflow;
    long long count = 1;
    if (PyLong_CheckExact(x)) return PyLong_AsLongLongAndOverflow(x, &overflow) >= DRAWS_MANY || overflow > 0;
    if (!PyTuple_CheckExact(x)) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(x) && count < DRAWS_MANY; k++) {
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, k))) return 0;
        if (draws_many(PyTuple_GET_ITEM(x, k))) count = DRAWS_MANY;
        else count *= PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(x, k), &overflow);
    }
    return count >= DRAWS_MANY;
}

/* Whether a draw is to be told of: the last of some, or one of many numbers. */
static inline int draw_counts(Function* self, PyObject* const* args, Py_ssize_t total) {
    if (--self->later == 0) return 1;
    for (Py_ssize_t k = 0; k < total; k++)
        if (draws_many(args[k])) return 1;
    return 0;
}

/* Whether what draws sooner is called from now on is for Python to say, which several threads may ask at once; -1 with an exception. */
static int draw_now(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *asked = PyObject_GetAttr(self->slow, soon_name), *found = asked ? PyObject_Vectorcall(asked, args, (size_t)n, names) : NULL;
    int passing = found == NULL && (PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_MemoryError)); /* of asking: NumPy's method may need less */
    if (passing) PyErr_Clear();
    Py_XDECREF(asked);
    if (found && found != Py_None && self->later != DRAWS_SOONER) {
        self->later = DRAWS_SOONER;
        Py_SETREF(self->theirs, found); /* once: another thread may be in NumPy's, which `slow` holds, and in this one, which stays */
        return 0;
    }
    if (self->later != DRAWS_SOONER) self->later = DRAWS;
    if (found == NULL && !passing) return -1;
    Py_XDECREF(found);
    return 0;
}

/* A view that a function of NumPy's makes, of a large array that exists or a part of one; NULL, perhaps without an exception, where it is not one. */
static PyObject* view_answer(Function* self, PyObject* const* args, Py_ssize_t n) {
    Called call = {self->theirs, args, n};
    PyObject* found;
    if (n == 0 || n > CALLED_MOST || Py_TYPE(args[0]) != array_type || (memory_of(args[0]) && !is_part(args[0]))) return NULL;
    for (Py_ssize_t k = 1; k < n; k++)
        if (!PyLong_CheckExact(args[k]) && args[k] != Py_None) return NULL;
    found = large_view(args[0], view_called, &call, 0);
    if (found && self->recorded == DIAGONALS) Py_SETREF(((Cell*)found)->readonly, Py_NewRef(Py_True));
    return found;
}

/* What a function gives whose arguments lie in memory. */
static PyObject* ufunc_answer(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names);
static PyObject* function_answer(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Function* self = (Function*)callable;
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), given = n;
    PyObject *found = NULL, *first = NULL;
    PyArrayObject* x;
    int least = limit_now() ? self->least : 1, keeps;
    if (self->kind == UFUNC) return ufunc_answer(self->slow, args, n, names);
    if (self->kind == OPERATOR && n == 2) return binary_answer(self->op, args[0], args[1]);
    if (total > MOST || (names && self->own && has_own(self->own, names))) goto slow;
    if (names && n == 0 && (self->kind == ZEROS || self->kind == ONES || self->kind == FULL) && PyTuple_GET_ITEM(names, 0) == shape_name) return by_position(callable, args, names);
    if (takes_cells(self->kind) && any_foreign(args, total)) return call_with_cells(function_call, callable, args, n, names);
    if (self->direct && total == 1 && n == 1 && !(self->kernels && any_large(args, 1, 0))) {
        x = self->kind == POSITION ? existing_memory(args[0]) : memory_of(args[0]);
        if (x && (self->kind == POSITION || !is_part(args[0]))) {
            Py_INCREF(x);
            found = self->direct(x);
            Py_DECREF(x);
            if (found || PyErr_Occurred()) return self->kind == NUMBERS ? found : answer(found, (PyObject**)args, 1);
        } else if (self->direct == direct_ravel || self->direct == direct_transpose || self->direct == direct_squeeze) {
            found = self->direct == direct_ravel ? large_view(args[0], NULL, NULL, 1) : large_view(args[0], view_direct, &self->direct, 0);
            if (found || PyErr_Occurred()) return found;
        }
    }
    if (self->views && self->recorded && names == NULL && ((found = view_answer(self, args, n)) || PyErr_Occurred())) return found;
    switch (self->kind) {
        case ANY:
        case NUMBERS:
            break;
        case LISTED:
        case AS_IT_IS:
            x = total == 1 && n == 1 ? memory_of(args[0]) : NULL;
            if (x && self->kind == AS_IT_IS) return Py_NewRef(args[0]);
            if (x) return cell_of(copy_of(x, NPY_KEEPORDER), NULL);
            if (n && total < 3 && (total == 1 || n == 2 || PyTuple_GET_ITEM(names, 0) == dtype_name)) {
                if (foreign_of(args[0])) found = of_foreign(self->kind, (PyArrayObject*)args[0], total == 2 ? args[1] : NULL);
                else found = listed(self->theirs, args[0], total == 2 ? args[1] : NULL);
            }
            if (found || PyErr_Occurred()) return found;
            /* fall through */
        case ORDERED:
            if (limit_now() && total && (found = as_array(self, args, n, names))) return found;
            goto slow;
        case ZEROS:
        case ONES:
        case FULL:
            least = 0;
            if (n == 0 || !small_shape(args[0])) goto slow;
            if (self->kind != ZEROS) {
                Py_ssize_t given = self->kind == ONES ? 1 : 2; /* without a dtype */
                if ((total == given && names == NULL) || (total == given + 1 && (names == NULL || (n == given && PyTuple_GET_ITEM(names, 0) == dtype_name))))
                    found = full_of(args[0], given == 2 ? args[1] : NULL, total > given ? args[given] : NULL);
            }
            if (self->kind == ZEROS && (total == 1 || (total == 2 && (n == 2 || PyTuple_GET_ITEM(names, 0) == dtype_name))))
                found = zeros_of(args[0], total == 2 ? args[1] : NULL);
            if (found && native_dtype((PyArrayObject*)found)) return cell_of(found, NULL);
            if (found) return answer(found, NULL, 0);
            if (PyErr_Occurred()) return NULL;
            break;
        case SQUARE: {
            Py_ssize_t side = total && n ? length_of(args[0]) : -1;
            if (side < 0 || side > 1 << 15 || side * side > limit_now() || !are_named(names, "dtype", "k")) goto slow;
            if (n > 1 && args[1] != Py_None && (length_of(args[1]) < 0 || length_of(args[1]) > 1 << 15 || side * length_of(args[1]) > limit_now())) goto slow;
            if ((x = eye_of(args, n, names))) return cell_of((PyObject*)x, NULL);
            least = 0;
            break;
        }
        case GROWING:
            if (!grows_little(args, total)) goto slow;
            break;
        case SIZED:
            if (!sized_little(args, total)) goto slow;
            least = 0;
            break;
        case LIBRARY:
            break;
        case RESIZED: /* `theirs` where more than the caller has the array */
            return n && Py_REFCNT(args[0]) > CALLERS ? PyObject_Vectorcall(self->theirs, args, (size_t)n, names) : slow_answer(self, args, n, names);
        case COUNTED:
            if ((found = counted_answer(self, args, n, names)) || PyErr_Occurred()) return found;
            goto slow;
        case VIEW:
            if (names || n < 1 || n > 2 || (x = memory_of(args[0])) == NULL || is_part(args[0])) goto slow;
            if (n == 1) return cell_of(PyArray_View(x, NULL, NULL), owner_of(args[0]));
            if (!PyUnicode_CheckExact(args[1]) && !PyObject_TypeCheck(args[1], &PyArrayDescr_Type)) goto slow;
            break;
        case DOT: /* of vectors, which is `@`, too, but for one number, which is a product, and errors that are not told of */
            if (names == NULL && n == 2 && (x = seen_of(args[0])) && PyArray_NDIM(x) == 1 && PyArray_TYPE(x) == NPY_DOUBLE) {
                PyArrayObject* y = seen_of(args[1]);
                if (y && PyArray_NDIM(y) == 1 && PyArray_DIM(x, 0) != 1) found = direct_product(x, y);
            }
            if (names == NULL && n == 2 && x == NULL) found = product_in_passing(args[0], args[1]);
            if (found || PyErr_Occurred()) return found;
            break;
        case MATRICES:
            if (names || n < 1 || n > 2 || n != self->matrices->loops.nin || (x = memory_of(args[0])) == NULL || (n == 2 && memory_of(args[1]) == NULL)) break;
            return of_matrices(self, args, n);
        case WHERE:
            if (names || n != 3 || (x = memory_of(args[0])) == NULL || !(memory_of(args[1]) || memory_of(args[2]))) break;
            found = where_of(x, memory_of(args[1]), memory_of(args[2]), memory_of(args[1]) ? args[2] : args[1]);
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        case SEARCHED: { /* `(a, v, side)` */
            PyArrayObject *sorted = n > 1 ? memory_of(args[0]) : NULL, *keys = sorted ? memory_of(args[1]) : NULL;
            int right = total == 3 && PyUnicode_CheckExact(args[2]) && PyUnicode_CompareWithASCIIString(args[2], "right") == 0;
            npy_int64 place = sorted && keys == NULL && n == total && (total == 2 || right) ? searched_one(sorted, args[1], right) : -1;
            if (place >= 0) return number_of(number_read((char*)&place, raw_dtypes[NPY_INTP], NULL));
            if (keys == NULL || !(total == 2 || (right && n == 3) || (right && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "side") == 0))) break;
            Py_INCREF(sorted), Py_INCREF(keys);
            found = searched(sorted, keys, right);
            Py_DECREF(sorted), Py_DECREF(keys);
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        }
        case VARIANCE:
        case DEVIATION: { /* `(a, axis, ddof=, keepdims=)` */
            PyObject* axis = n == 2 ? args[1] : Py_None;
            long ddof = 0;
            int keeps = 0;
            for (Py_ssize_t k = given; k < total && n; k++) {
                PyObject* name = PyTuple_GET_ITEM(names, k - given);
                if (name == axis_name && n == 1) axis = args[k];
                else if (name == ddof_name && PyLong_CheckExact(args[k]) && (ddof = PyLong_AsLong(args[k])) >= 0 && ddof < 1 << 20) continue;
                else if (name == keepdims_name && PyBool_Check(args[k])) keeps = args[k] == Py_True;
                else n = 0; /* another keyword, or value */
            }
            if (PyErr_Occurred()) PyErr_Clear();
            x = n < 1 ? NULL : axis == Py_None ? existing_memory(args[0]) : memory_of(args[0]);
            if (n < 1 || n > 2 || !(axis == Py_None || PyLong_CheckExact(axis)) || x == NULL) {
                n = given;
                break;
            }
            Py_INCREF(x);
            found = spread_of(self->reduction, x, axis, keeps, (double)ddof, self->kind == DEVIATION);
            Py_DECREF(x);
            if (found && PyArray_CheckExact(found)) return cell_of(found, NULL);
            if (found || PyErr_Occurred()) return found;
            break;
        }
        case CLOSE: { /* `(a, b, rtol, atol)` */
            double within[2] = {1e-5, 1e-8};
            int fine = n >= 2 && n <= 4 && limit_now();
            for (Py_ssize_t k = 2; fine && k < total; k++) {
                PyObject* name = k < n ? NULL : PyTuple_GET_ITEM(names, k - n);
                int which = k < n ? (int)k - 2 : PyUnicode_CompareWithASCIIString(name, "rtol") == 0 ? 0 : PyUnicode_CompareWithASCIIString(name, "atol") == 0 ? 1 : -1;
                if (which < 0 || !PyFloat_CheckExact(args[k])) fine = 0;
                else within[which] = PyFloat_AS_DOUBLE(args[k]);
            }
            fine = fine && within[0] >= 0 && within[0] <= DBL_MAX && within[1] >= 0 && within[1] <= DBL_MAX; /* else NumPy warns */
            if (fine) found = close_of(args[0], args[1], within[0], within[1], self->all);
            if (found || PyErr_Occurred()) return found;
            break;
        }
        case JOINED:
            if (total == 1 && n == 1) found = joined(args[0]);
            if (found || PyErr_Occurred()) return answer(found, NULL, 0);
            break;
        case PRODUCT:
            if (!grows_little(args, total)) goto slow;
            if (names == NULL && n == 2 && (x = memory_of(args[0])) && memory_of(args[1])) found = outer_of(x, memory_of(args[1]));
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        case DRAW:
            if (limit_now() == 0) goto slow;
            if (self->later > 0 && draw_counts(self, args, total) && draw_now(self, args, n, names) < 0) return NULL;
            least = 0;
            break;
        case RANGE:
            if (n == 0 || !are_named(names, "dtype", "") || !small_range(args, n)) goto slow;
            if (names == NULL && (x = range_of(args, n))) return cell_of((PyObject*)x, NULL);
            least = 0;
            break;
        case STACKED: case ROWS_STACKED: case JOINED_FLAT: case COLUMNS_STACKED: /* `(arrays)` */
            if (self->kind == JOINED_FLAT && names == NULL && n == 1 && IS_ROW(args[0]) && PySequence_Fast_GET_SIZE(args[0]) && axes_of(PySequence_Fast_ITEMS(args[0])[0]) > 1) break;
            if (names == NULL && n == 1 && IS_ROW(args[0]) && limit_now() && (found = of_arrays(args[0], self->kind))) return cell_of(found, NULL);
            break;
        case POSITION: /* `(a, axis)` */
            if (total == 2 && n && (n == 2 || PyTuple_GET_ITEM(names, 0) == axis_name) && PyLong_CheckExact(args[1]) && (x = memory_of(args[0])) && PyArray_NDIM(x) > 1) {
                int overflow;
                long axis = PyLong_AsLongAndOverflow(args[1], &overflow);
                if (overflow || axis < -AXES || axis >= AXES) break; /* NumPy refuses */
                Py_INCREF(x);
                found = cell_of((PyObject*)positions_along(x, (int)axis, self->direct == direct_argmax), NULL);
                if (found == NULL && !PyErr_Occurred()) found = answer((self->direct == direct_argmax ? PyArray_ArgMax : PyArray_ArgMin)(x, (int)axis, NULL), (PyObject**)args, 1);
                Py_DECREF(x);
                return found;
            }
            break;
        case RESHAPE:
            if (names || !(n == 2 || (n > 2 && Py_IS_TYPE(self->theirs, &PyMethodDescr_Type)))) break;
            if ((x = memory_of(args[0])) && !is_part(args[0])) {
                found = reshaped(x, args + 1, n - 1);
                if (found || PyErr_Occurred()) return answer(found, (PyObject**)args, 1);
            } else {
                Lengths lengths = {args + 1, n - 1};
                found = large_view(args[0], view_reshaped, &lengths, 1);
                if (found || PyErr_Occurred()) return found;
            }
            break;
        case ASTYPE:
            if (names == NULL && n == 2 && (x = memory_of(args[0]))) found = converted(x, args[1]);
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        case LINSPACE: case SPACED:
            if (self->kind == LINSPACE && limit_now() && ((found = linspace_of(args, n, names)) || PyErr_Occurred())) return found;
            if (n < 2 || !spaced_little(args, n, names)) goto slow;
            least = 0;
            break;
        case OUTER:
        case AT:
        case OF_UFUNC:
            if (n < 2 || !is_ufunc(args[0])) goto slow;
            first = numpys_ufunc(args[0]);
            if (!PyObject_TypeCheck(first, &PyUFunc_Type)) goto slow;
            if (self->kind == OUTER && !grows_little(args + 1, total - 1)) goto slow;
            if (self->kind != AT) break;
            if (names == NULL && n > 2 && ((found = at_positions(first, args + 1, n - 1)) || PyErr_Occurred())) return found;
            x = memory_of(args[1]);
            if (x == NULL || is_part(args[1]) || !is_writable(x)) goto slow; /* NumPy writes to read-only memory */
            break;
        case REDUCTION:
        case MEAN:
            if (total == 0 || total > 3) break;
            x = memory_of(args[0]);
            if (total == 1 && n == 1) {
                PyArrayObject *numbers = existing_memory(args[0]), *values = numbers ? numbers : read_memory(args[0]);
                if (values && (PyArray_ISBOOL(values) || (numbers && x == NULL && (self->kind != MEAN || HAS_MEAN(PyArray_TYPE(values)))))) {
                    Py_INCREF(values);
                    found = PyArray_ISBOOL(values) ? of_truth(self, args[0], values) : reduced_whole(self, values);
                    Py_DECREF(values);
                    if (found || PyErr_Occurred()) return found;
                }
            }
            if (x == NULL && least == 0 && (is_number(args[0]) || IS_LIST(args[0]))) break;
            if (x == NULL) goto slow;
            keeps = total == n + 1 && total > 1 && PyTuple_GET_ITEM(names, 0) == keepdims_name; /* `(a, axis, keepdims=True)` */
            keeps |= total == n + 2 && PyTuple_GET_ITEM(names, 0) == axis_name && PyTuple_GET_ITEM(names, 1) == keepdims_name;
            if (keeps && (total < 3 || args[2] != Py_True)) break;
            if (total == 3 && !keeps) break;
            if (total == 1 || ((n == 2 || (n == 1 && PyTuple_GET_ITEM(names, 0) == axis_name)) && (args[1] == Py_None || PyLong_CheckExact(args[1])))) {
                Py_INCREF(x);
                found = reduced(self, args[0], x, total == 1 ? Py_None : args[1], keeps);
                Py_DECREF(x);
                if (found || PyErr_Occurred()) return found;
            }
    }
    if ((total == 0 && self->kind != DRAW) || (self->kernels && any_large(args, total, 1))) goto slow;
    if (self->method && names == NULL && Py_TYPE(args[0]) == array_type) found = asked(self->method, args, n, names, least, 0, ANY, first);
    else found = asked(self->theirs, args, n, names, least, self->listens, self->kind, first);
    if (found || PyErr_Occurred()) return found;
slow:
    return slow_answer(self, args, n, names);
}

#endif
