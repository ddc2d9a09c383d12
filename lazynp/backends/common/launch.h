/* Running the kernels of a schedule: `compiled.Launcher` and the loop over them, in C.

   In: what the launchers of a plan know; buffers, integers and scalars.  Out: the values of the outputs, and which floating-point errors were
   raised.  Promise: one pass over the kernels, which fills an argument block on the stack and calls; memory is asked of the allocator in
   Python, and writes in place are decided there. */

#ifndef LAZYNP_LAUNCH_H
#define LAZYNP_LAUNCH_H

#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int slot, entry, other; /* where the address goes; whose; and of what else (the value that dies, the value that is changed) */
    PyObject *dtype, *shape, *size;
} Place;
typedef struct {
    int slot, count;
    int64_t constant;
    int64_t* terms; /* parameter, factor */
} Integer;
typedef struct {
    int offset, slot;
    char form, complex;
} Scalar;
typedef struct {
    PyObject *run, *error_class;
    void (*function)(void*); /* NULL where `run` is no function of C's */
    int64_t* template;
    int slots, read_count, output_count, taken_count, update_count, workspace_count, integer_count, scalar_count, dead_count;
    int threads_slot, error_slot, flags_slot, threaded, error;
    int64_t wanted;
    Place *reads, *outputs, *taken, *updates, *workspaces;
    Integer* integers;
    Scalar* scalars;
    int* dead;
} Kernel;
typedef struct {
    PyObject_HEAD
    PyObject* kept; /* what the numbers were read from */
    int kernel_count, entry_count, input_count, output_count;
    Kernel* kernels;
    int *inputs, *outputs; /* entry and buffer; entries */
} Kernels;

/* Given by the module: */
static PyTypeObject* buffer_class;
static Py_ssize_t at_array, at_lease, at_shared, at_views, at_ends, at_address, at_block, at_dtype, at_shape;
static PyObject *launcher_names, *allocate_name, *updated_name; /* the names of the module of `Launcher`, by which both find the same functions */
static PyObject *kernel_error, *address_name, *retyped_name;

#define SLOT(X, AT) (*(PyObject**)((char*)(X) + (AT)))

static int64_t address_of(PyObject* buffer) {
    PyObject *address = Py_TYPE(buffer) == buffer_class ? SLOT(buffer, at_address) : NULL, *found;
    int64_t number;
    if (address && address != Py_None) return PyLong_AsLongLong(address);
    found = PyObject_GetAttr(buffer, address_name);
    if (found == NULL) return -1;
    number = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return number;
}

static PyObject* named(PyObject* name) { /* borrowed */
    PyObject* found = PyDict_GetItemWithError(launcher_names, name);
    if (found == NULL && !PyErr_Occurred()) PyErr_SetObject(PyExc_NameError, name);
    return found;
}

static PyObject* allocated(PyObject* size) {
    PyObject* allocate = named(allocate_name);
    return allocate ? PyObject_CallOneArg(allocate, size) : NULL;
}

/* A buffer of a new block: what `Buffer.of_block` makes. */
static PyObject* new_buffer(Place* place, int64_t* address) {
    PyObject *block = allocated(place->size), *at, *made;
    if (block == NULL) return NULL;
    at = PyObject_GetAttr(block, address_name);
    made = at ? buffer_class->tp_alloc(buffer_class, 0) : NULL;
    if (made == NULL) {
        Py_XDECREF(at), Py_DECREF(block);
        return NULL;
    }
    *address = PyLong_AsLongLong(at);
    SLOT(made, at_array) = Py_NewRef(Py_None);
    SLOT(made, at_lease) = Py_NewRef(Py_None);
    SLOT(made, at_shared) = Py_NewRef(Py_False);
    SLOT(made, at_views) = Py_NewRef(Py_None);
    SLOT(made, at_ends) = Py_NewRef(Py_None);
    SLOT(made, at_address) = at;
    SLOT(made, at_block) = block;
    SLOT(made, at_dtype) = Py_NewRef(place->dtype);
    SLOT(made, at_shape) = Py_NewRef(place->shape);
    return made;
}

static int put_scalar(char* to, Scalar* scalar, PyObject* value) {
    Py_complex both;
    double real;
    long long number;
    PyObject* index;
    float single[2];
    if (scalar->complex) {
        both = PyComplex_AsCComplex(value);
        if (PyErr_Occurred()) return -1;
        single[0] = (float)both.real, single[1] = (float)both.imag;
        if (scalar->form == 'f') memcpy(to, single, sizeof(single));
        else memcpy(to, &both.real, 8), memcpy(to + 8, &both.imag, 8);
        return 0;
    }
    switch (scalar->form) {
    case 'd': case 'f': case 'e':
        real = PyFloat_AsDouble(value);
        if (real == -1 && PyErr_Occurred()) return -1;
        single[0] = (float)real;
        if (scalar->form == 'e') return PyFloat_Pack2(real, to, PY_LITTLE_ENDIAN);
        memcpy(to, scalar->form == 'd' ? (char*)&real : (char*)single, scalar->form == 'd' ? 8 : 4);
        return 0;
    case '?':
        number = PyObject_IsTrue(value);
        break;
    default:
        index = PyNumber_Index(value);
        if (index == NULL) return -1;
        number = scalar->form == 'Q' ? (long long)PyLong_AsUnsignedLongLong(index) : PyLong_AsLongLong(index);
        Py_DECREF(index);
    }
    if (number == -1 && PyErr_Occurred()) return -1;
    memcpy(to, &number, strchr("?bB", scalar->form) ? 1 : strchr("hH", scalar->form) ? 2 : strchr("iI", scalar->form) ? 4 : 8); /* little-endian */
    return 0;
}

/* Put the numbers of a run into an argument block; -1 on failure, else the largest of the integers without their signs. */
static int64_t put_numbers(Kernel* self, int64_t* block, PyObject* integers, PyObject* scalars) {
    int64_t largest = 0;
    int k, i;
    for (k = 0; k < self->integer_count; k++) {
        Integer* integer = &self->integers[k];
        int64_t sum = integer->constant;
        for (i = 0; i < integer->count; i++) {
            if (integer->terms[2 * i] >= PyList_GET_SIZE(integers)) {
                PyErr_SetString(PyExc_IndexError, "a plan asks for more integers than its program has");
                return -1;
            }
            sum += integer->terms[2 * i + 1] * PyLong_AsLongLong(PyList_GET_ITEM(integers, integer->terms[2 * i]));
        }
        block[integer->slot] = sum;
        if (sum > largest || -sum > largest) largest = sum < 0 ? -sum : sum;
    }
    for (k = 0; k < self->scalar_count; k++) {
        Scalar* scalar = &self->scalars[k];
        if (scalar->slot >= PyList_GET_SIZE(scalars)) {
            PyErr_SetString(PyExc_IndexError, "a plan asks for more scalars than its program has");
            return -1;
        }
        if (put_scalar((char*)block + scalar->offset, scalar, PyList_GET_ITEM(scalars, scalar->slot)) < 0) return -1;
    }
    return PyErr_Occurred() ? -1 : largest;
}

/* fill(block, integers, scalars): the numbers of a run of the one kernel in its argument block; see `Launcher.fill`. */
static PyObject* kernels_fill(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    Kernel* kernel = ((Kernels*)object)->kernels;
    Py_buffer block;
    int64_t largest;
    if (count != 3 || !PyList_CheckExact(args[1]) || !PyList_CheckExact(args[2]) || ((Kernels*)object)->kernel_count != 1) {
        PyErr_SetString(PyExc_TypeError, "fill takes an argument block and lists of integers and scalars");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &block, PyBUF_WRITABLE) < 0) return NULL;
    largest = -1;
    if (block.len != 8 * kernel->slots) PyErr_SetString(PyExc_ValueError, "an argument block of another kernel");
    else largest = put_numbers(kernel, block.buf, args[1], args[2]);
    PyBuffer_Release(&block);
    return largest < 0 ? NULL : PyLong_FromLongLong(largest);
}

/* Run one kernel; -1 on failure, else the errors it raised. */
static int64_t launch(Kernel* self, PyObject** values, PyObject* integers, PyObject* scalars, int threads, PyObject* claim, int64_t* block) {
    PyObject* held[16] = {NULL};
    PyObject** holding = self->workspace_count > 16 ? PyMem_Calloc(self->workspace_count, sizeof(PyObject*)) : held;
    PyObject *made, *at;
    int64_t flags = -1;
    int k;
    if (holding == NULL) return PyErr_NoMemory(), -1;
    memcpy(block, self->template, 8 * self->slots);
    for (k = 0; k < self->read_count; k++) {
        block[self->reads[k].slot] = address_of(values[self->reads[k].entry]);
        if (block[self->reads[k].slot] == -1 && PyErr_Occurred()) goto done;
    }
    for (k = 0; k < self->output_count; k++) {
        Place* place = &self->outputs[k];
        if ((made = new_buffer(place, &block[place->slot])) == NULL) goto done;
        Py_XSETREF(values[place->entry], made);
    }
    for (k = 0; k < self->taken_count; k++) {
        Place* place = &self->taken[k];
        made = PyObject_CallMethodObjArgs(values[place->other], retyped_name, place->dtype, place->shape, NULL);
        if (made == NULL) goto done;
        Py_XSETREF(values[place->entry], made);
        block[place->slot] = address_of(made);
        if (block[place->slot] == -1 && PyErr_Occurred()) goto done;
    }
    for (k = 0; k < self->update_count; k++) {
        Place* place = &self->updates[k];
        if ((at = named(updated_name)) == NULL) goto done;
        made = PyObject_CallFunctionObjArgs(at, values[place->other], place->dtype, place->shape, integers, claim, NULL);
        if (made == NULL) goto done;
        Py_XSETREF(values[place->entry], made);
        block[place->slot] = address_of(made);
        if (block[place->slot] == -1 && PyErr_Occurred()) goto done;
    }
    for (k = 0; k < self->workspace_count; k++) {
        holding[k] = allocated(self->workspaces[k].size);
        if (holding[k] == NULL || (at = PyObject_GetAttr(holding[k], address_name)) == NULL) goto done;
        block[self->workspaces[k].slot] = PyLong_AsLongLong(at);
        Py_DECREF(at);
    }
    if (put_numbers(self, block, integers, scalars) < 0) goto done;
    block[self->threads_slot] = self->threaded ? threads : 1;
    if (self->function) {
        Py_BEGIN_ALLOW_THREADS
        self->function(block);
        Py_END_ALLOW_THREADS
    } else {
        made = PyObject_CallFunction(self->run, "L", (long long)(intptr_t)block);
        if (made == NULL) goto done;
        Py_DECREF(made);
    }
    if (self->error && block[self->error_slot]) PyErr_SetNone(kernel_error);
    else flags = block[self->flags_slot] & self->wanted;
done:
    for (k = 0; k < self->workspace_count; k++) Py_XDECREF(holding[k]);
    if (holding != held) PyMem_Free(holding);
    return flags;
}

/* run(buffers, integers, scalars, threads, claim): the buffers of the outputs, and the errors. */
static PyObject* kernels_run(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    Kernels* self = (Kernels*)object;
    PyObject *few[64], **values = few, *found = NULL, *outputs = NULL;
    int64_t room[256], *block = room, flags = 0, raised;
    int k, i, most = 0, threads;
    if (count != 5 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]) || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "run takes lists of buffers, integers and scalars, a number of threads and a claim");
        return NULL;
    }
    threads = (int)PyLong_AsLong(args[3]);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    for (k = 0; k < self->kernel_count; k++)
        if (self->kernels[k].slots > most) most = self->kernels[k].slots;
    if (self->entry_count > 64) values = PyMem_Malloc(self->entry_count * sizeof(PyObject*));
    if (most > 256) block = PyMem_Malloc(8 * most);
    if (values == NULL || block == NULL) {
        PyErr_NoMemory();
        goto free;
    }
    memset(values, 0, self->entry_count * sizeof(PyObject*));
    for (k = 0; k < self->input_count; k++) {
        if (self->inputs[2 * k + 1] >= PyList_GET_SIZE(args[0])) {
            PyErr_SetString(PyExc_IndexError, "a plan asks for more buffers than its program has");
            goto done;
        }
        values[self->inputs[2 * k]] = Py_NewRef(PyList_GET_ITEM(args[0], self->inputs[2 * k + 1]));
    }
    for (k = 0; k < self->kernel_count; k++) {
        Kernel* kernel = &self->kernels[k];
        raised = launch(kernel, values, args[1], args[2], threads, args[4], block);
        if (raised < 0) goto done;
        flags |= raised;
        for (i = 0; i < kernel->dead_count; i++) Py_CLEAR(values[kernel->dead[i]]);
    }
    outputs = PyList_New(self->output_count);
    for (k = 0; outputs && k < self->output_count; k++) {
        PyObject* value = values[self->outputs[k]];
        if (value == NULL) {
            PyErr_SetString(PyExc_KeyError, "an output that no kernel made");
            goto done;
        }
        PyList_SET_ITEM(outputs, k, Py_NewRef(value));
    }
    if (outputs) found = Py_BuildValue("(OL)", outputs, (long long)flags);
done:
    Py_XDECREF(outputs);
    for (k = 0; k < self->entry_count; k++) Py_XDECREF(values[k]);
free:
    if (values != few) PyMem_Free(values);
    if (block != room) PyMem_Free(block);
    return found;
}

/* step(values, integers, scalars, threads, claim): the errors; `values` is a dict of buffers by entry, to which the new ones are added. */
static PyObject* kernels_step(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    Kernels* self = (Kernels*)object;
    Kernel* kernel = self->kernels;
    PyObject *few[64], **values = few, *found = NULL, *key;
    int64_t room[256], *block = room, raised = -1;
    Place* groups[4] = {kernel->reads, kernel->outputs, kernel->taken, kernel->updates};
    int counts[4] = {kernel->read_count, kernel->output_count, kernel->taken_count, kernel->update_count};
    int g, k, e, threads;
    if (count != 5 || !PyDict_CheckExact(args[0]) || !PyList_CheckExact(args[1]) || !PyList_CheckExact(args[2]) || self->kernel_count != 1) {
        PyErr_SetString(PyExc_TypeError, "step takes a dict of buffers, lists of integers and scalars, a number of threads and a claim");
        return NULL;
    }
    threads = (int)PyLong_AsLong(args[3]);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    if (self->entry_count > 64) values = PyMem_Malloc(self->entry_count * sizeof(PyObject*));
    if (kernel->slots > 256) block = PyMem_Malloc(8 * kernel->slots);
    if (values == NULL || block == NULL) {
        PyErr_NoMemory();
        goto free;
    }
    memset(values, 0, self->entry_count * sizeof(PyObject*));
    for (g = 0; g < 4; g++) { /* what it reads, and what dies with it or is changed */
        if (g == 1) continue;
        for (k = 0; k < counts[g]; k++) {
            e = g ? groups[g][k].other : groups[g][k].entry;
            if (values[e]) continue;
            key = PyLong_FromLong(e);
            values[e] = key ? Py_XNewRef(PyDict_GetItemWithError(args[0], key)) : NULL;
            Py_XDECREF(key);
            if (values[e] == NULL) {
                if (!PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "%d", e);
                goto done;
            }
        }
    }
    raised = launch(kernel, values, args[1], args[2], threads, args[4], block);
    for (g = 1; raised >= 0 && g < 4; g++)
        for (k = 0; k < counts[g]; k++) {
            e = groups[g][k].entry;
            key = PyLong_FromLong(e);
            if (key == NULL || PyDict_SetItem(args[0], key, values[e]) < 0) raised = -1;
            Py_XDECREF(key);
        }
    if (raised >= 0) found = PyLong_FromLongLong(raised);
done:
    for (k = 0; k < self->entry_count; k++) Py_XDECREF(values[k]);
free:
    if (values != few) PyMem_Free(values);
    if (block != room) PyMem_Free(block);
    return found;
}

/* Making one --------------------------------------------------------------------------------------------------------------------------- */

static int number(PyObject* from, Py_ssize_t k) { /* of a tuple */
    PyObject* item = PyTuple_Check(from) && k < PyTuple_GET_SIZE(from) ? PyTuple_GET_ITEM(from, k) : NULL;
    if (item == NULL) return PyErr_SetString(PyExc_TypeError, "a tuple of numbers"), -1;
    return (int)PyLong_AsLong(item);
}

static int* numbers(PyObject* from, int* count) {
    Py_ssize_t k, n = PyList_Check(from) ? PyList_GET_SIZE(from) : -1;
    int* made = n < 0 ? NULL : PyMem_Calloc(n + 1, sizeof(int));
    if (made == NULL) return PyErr_SetString(PyExc_TypeError, "a list of numbers"), NULL;
    for (k = 0; k < n; k++) made[k] = (int)PyLong_AsLong(PyList_GET_ITEM(from, k));
    *count = (int)n;
    return made;
}

/* Places from a list of tuples; `form` says what these hold: s(lot), e(ntry), d(type), h (shape), z (size), o(ther). */
static Place* places(PyObject* from, int* count, const char* form) {
    Py_ssize_t k, n = PyList_Check(from) ? PyList_GET_SIZE(from) : -1;
    Place* made = n < 0 ? NULL : PyMem_Calloc(n + 1, sizeof(Place));
    const char* at;
    if (made == NULL) return PyErr_SetString(PyExc_TypeError, "a list of places"), NULL;
    for (k = 0; k < n; k++) {
        PyObject* item = PyList_GET_ITEM(from, k);
        for (at = form; *at; at++) {
            Py_ssize_t i = at - form;
            if (!PyTuple_Check(item) || i >= PyTuple_GET_SIZE(item)) {
                PyErr_SetString(PyExc_TypeError, "a tuple that says a place");
                break;
            }
            if (*at == 's') made[k].slot = number(item, i);
            else if (*at == 'e') made[k].entry = number(item, i);
            else if (*at == 'o') made[k].other = number(item, i);
            else if (*at == 'd') made[k].dtype = PyTuple_GET_ITEM(item, i);
            else if (*at == 'h') made[k].shape = PyTuple_GET_ITEM(item, i);
            else made[k].size = PyTuple_GET_ITEM(item, i);
        }
    }
    *count = (int)n;
    return made;
}

static PyObject* item_of(PyObject* dict, const char* name) {
    PyObject* found = PyDict_GetItemString(dict, name);
    if (found == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_KeyError, name);
    return found;
}

static int int_of(PyObject* dict, const char* name) {
    PyObject* found = item_of(dict, name);
    return found ? (int)PyLong_AsLong(found) : -1;
}

static int kernel_made(Kernel* self, PyObject* from) {
    PyObject *each, *view;
    Py_ssize_t k, i;
    self->run = item_of(from, "run");
    each = item_of(from, "function");
    if (each) self->function = (void (*)(void*))PyLong_AsVoidPtr(each);
    self->slots = int_of(from, "slots");
    view = item_of(from, "template");
    if (PyErr_Occurred()) return -1;
    if (!PyBytes_Check(view) || PyBytes_GET_SIZE(view) != 8 * self->slots) return PyErr_SetString(PyExc_TypeError, "a template of all slots"), -1;
    self->template = (int64_t*)PyBytes_AS_STRING(view);
    self->threads_slot = int_of(from, "threads");
    self->error_slot = int_of(from, "error_slot");
    self->flags_slot = int_of(from, "flags");
    self->threaded = int_of(from, "threaded");
    self->error = int_of(from, "error");
    self->wanted = int_of(from, "wanted");
    if (PyErr_Occurred()) return -1;
    if (!(self->reads = places(item_of(from, "reads"), &self->read_count, "se")) ||
        !(self->outputs = places(item_of(from, "outputs"), &self->output_count, "sedhz")) ||
        !(self->taken = places(item_of(from, "taken"), &self->taken_count, "sedho")) ||
        !(self->updates = places(item_of(from, "updates"), &self->update_count, "sedho")) ||
        !(self->workspaces = places(item_of(from, "workspaces"), &self->workspace_count, "sz")) ||
        !(self->dead = numbers(item_of(from, "dead"), &self->dead_count)))
        return -1;
    each = item_of(from, "integers");
    if (each == NULL || !PyList_Check(each)) return -1;
    self->integers = PyMem_Calloc(PyList_GET_SIZE(each) + 1, sizeof(Integer));
    for (k = 0; self->integers && k < PyList_GET_SIZE(each); k++) {
        Integer* integer = &self->integers[k];
        PyObject* terms;
        integer->slot = number(PyList_GET_ITEM(each, k), 0);
        if (PyErr_Occurred() || PyTuple_GET_SIZE(PyList_GET_ITEM(each, k)) != 3) return -1;
        integer->constant = PyLong_AsLongLong(PyTuple_GET_ITEM(PyList_GET_ITEM(each, k), 1));
        terms = PyTuple_GET_ITEM(PyList_GET_ITEM(each, k), 2);
        if (!PyTuple_Check(terms)) return PyErr_SetString(PyExc_TypeError, "terms are a tuple"), -1;
        integer->terms = PyMem_Calloc(2 * PyTuple_GET_SIZE(terms) + 1, sizeof(int64_t));
        if (integer->terms == NULL) return PyErr_NoMemory(), -1;
        self->integer_count++;
        integer->count = (int)PyTuple_GET_SIZE(terms);
        for (i = 0; i < integer->count; i++) {
            PyObject* term = PyTuple_GET_ITEM(terms, i);
            if (!PyTuple_Check(term) || PyTuple_GET_SIZE(term) != 2) return PyErr_SetString(PyExc_TypeError, "a term is a pair"), -1;
            integer->terms[2 * i] = PyLong_AsLongLong(PyTuple_GET_ITEM(term, 0));
            integer->terms[2 * i + 1] = PyLong_AsLongLong(PyTuple_GET_ITEM(term, 1));
        }
    }
    each = item_of(from, "scalars");
    if (each == NULL || !PyList_Check(each)) return -1;
    self->scalars = PyMem_Calloc(PyList_GET_SIZE(each) + 1, sizeof(Scalar));
    for (k = 0; self->scalars && k < PyList_GET_SIZE(each); k++) {
        PyObject* item = PyList_GET_ITEM(each, k);
        const char* form;
        self->scalars[k].offset = number(item, 0);
        self->scalars[k].slot = number(item, 2);
        if (PyErr_Occurred() || (form = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 1))) == NULL) return -1;
        self->scalars[k].form = form[0];
        self->scalars[k].complex = form[1] != 0;
        self->scalar_count++;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static void kernels_dealloc(PyObject* object) {
    Kernels* self = (Kernels*)object;
    int k, i;
    PyObject_GC_UnTrack(object);
    for (k = 0; self->kernels && k < self->kernel_count; k++) {
        Kernel* kernel = &self->kernels[k];
        for (i = 0; kernel->integers && i < kernel->integer_count; i++) PyMem_Free(kernel->integers[i].terms);
        PyMem_Free(kernel->reads), PyMem_Free(kernel->outputs), PyMem_Free(kernel->taken), PyMem_Free(kernel->updates);
        PyMem_Free(kernel->workspaces), PyMem_Free(kernel->integers), PyMem_Free(kernel->scalars), PyMem_Free(kernel->dead);
    }
    PyMem_Free(self->kernels), PyMem_Free(self->inputs), PyMem_Free(self->outputs);
    Py_CLEAR(self->kept);
    PyObject_GC_Del(object);
}
static int kernels_traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(((Kernels*)object)->kept);
    return 0;
}
static PyMethodDef kernels_methods[] = {
    {"run", (PyCFunction)(void (*)(void))kernels_run, METH_FASTCALL,
     "run(buffers, integers, scalars, threads, claim)\n\nCompute, and return the outputs and the errors."},
    {"step", (PyCFunction)(void (*)(void))kernels_step, METH_FASTCALL,
     "step(values, integers, scalars, threads, claim)\n\nCompute the one kernel, and return the errors."},
    {"fill", (PyCFunction)(void (*)(void))kernels_fill, METH_FASTCALL,
     "fill(block, integers, scalars)\n\nPut the numbers of a run into the argument block of the one kernel, and return the largest integer."},
    {NULL, NULL, 0, NULL}};
static PyTypeObject kernels_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.backends.common._launch.Kernels",
    .tp_doc = "The kernels of a schedule, ready to be called.",
    .tp_basicsize = sizeof(Kernels),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = kernels_dealloc,
    .tp_traverse = kernels_traverse,
    .tp_methods = kernels_methods,
};

/* `kernels`: a list of dicts; `inputs`: entry, buffer, entry, ...; `outputs`: entries; all smaller than `entries`. */
static PyObject* kernels_new(PyObject* kernels, PyObject* inputs, PyObject* outputs, int entries) {
    Kernels* made = PyObject_GC_New(Kernels, &kernels_type);
    Py_ssize_t k;
    if (made == NULL) return NULL;
    made->kernels = NULL;
    made->inputs = made->outputs = NULL;
    made->kernel_count = 0;
    made->entry_count = entries;
    made->kept = Py_NewRef(kernels);
    PyObject_GC_Track((PyObject*)made);
    made->inputs = numbers(inputs, &made->input_count);
    made->outputs = made->inputs ? numbers(outputs, &made->output_count) : NULL;
    made->kernels = PyMem_Calloc(PyList_GET_SIZE(kernels) + 1, sizeof(Kernel));
    if (made->outputs == NULL || made->kernels == NULL) return Py_DECREF(made), NULL;
    made->input_count /= 2;
    for (k = 0; k < PyList_GET_SIZE(kernels); k++) {
        made->kernel_count++;
        if (kernel_made(&made->kernels[k], PyList_GET_ITEM(kernels, k)) < 0) return Py_DECREF(made), NULL;
    }
    return (PyObject*)made;
}

static Py_ssize_t offset_of(PyObject* member) {
    if (Py_TYPE(member) == &PyMemberDescr_Type) return ((PyMemberDescrObject*)member)->d_member->offset;
    PyErr_SetString(PyExc_ImportError, "buffers have other slots than the native launcher knows");
    return -1;
}

#endif
