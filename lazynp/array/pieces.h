/* Work cut into pieces, which several threads take.

   In: a function that computes a piece, how many elements (or rows) there are, and what they cost.  Out: whether a floating-point error was raised.
   Promise: bits do not depend on who computes a piece: pieces begin at the same elements whatever the number of threads, and each thread
   rounds as the caller's does.  What takes long lets other threads of the program run meanwhile; its operands and its result are held
   by the caller, and it uses nothing that another call might use.

   What takes long is cut into pieces (`pieces.h`) that several threads take (`workers.h`, the pool that kernels have, too): NumPy's loops over many
   elements, passes, machine code, reductions of an axis. Pieces begin at the same elements however many threads come, in lines at multiples of 4096,
   where a loop's vectors begin as well, so the bits are those of one call. How many come is estimated: nanoseconds of work (of NumPy's loops what an
   element took at best in four runs; the first four are one thread's) against 60 us, and against the bytes, for what one processor has in its cache
   another one gets slowly: less than 0.06 ns of work on a byte is shared only where so much is moved that it is in no processor's cache. Each thread has
   its own flags, its own desk of blocks, and the caller's way of rounding. From 10 us on Python's lock is let go meanwhile, if the program has other
   threads: the operands are held, and nothing is used that another call uses. A child after `fork` computes alone. */

#ifndef LAZYNP_PIECES_H
#define LAZYNP_PIECES_H

#include <fenv.h>
#include "parts.h"
#include "workers.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define LAZYNP_SSE 1
#endif

/* Errors, as NumPy's bits: what was raised since `flags_clear`. */
enum { ERROR_DIVIDE = 1, ERROR_OVER = 2, ERROR_UNDER = 4, ERROR_INVALID = 8, ERRORS = 15 };
#ifdef LAZYNP_SSE
#define FLAGS 0x1d /* in both units: invalid, division by zero, overflow, underflow */

/* The flags of the old unit, for which the C library needs a call. */
static inline unsigned old_flags(void) {
#ifdef __GNUC__
    unsigned short now;
    __asm__ volatile("fnstsw %0" : "=a"(now));
    return now & FLAGS;
#else
    return (unsigned)fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
#endif
}
static inline void flags_clear(int basic) {
    unsigned now = _mm_getcsr();
    if (now & FLAGS) _mm_setcsr(now & ~0x3fu);
    if (!basic && old_flags()) feclearexcept(FE_ALL_EXCEPT);
}
static int flags_told(int basic) { /* the old unit's may be of long ago where they were not cleared */
    unsigned now = _mm_getcsr() | (basic ? 0 : old_flags());
    return (now & 4 ? ERROR_DIVIDE : 0) | (now & 8 ? ERROR_OVER : 0) | (now & 16 ? ERROR_UNDER : 0) | (now & 1 ? ERROR_INVALID : 0);
}
static inline int flags_raised(int basic) {
    return (_mm_getcsr() & FLAGS) || (!basic && old_flags()) ? flags_told(basic) : 0;
}
#else
static inline void flags_clear(int basic) {
    (void)basic;
    if (fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW)) feclearexcept(FE_ALL_EXCEPT);
}
static inline int flags_raised(int basic) {
    int now = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
    (void)basic;
    return now == 0 ? 0 : (now & FE_DIVBYZERO ? ERROR_DIVIDE : 0) | (now & FE_OVERFLOW ? ERROR_OVER : 0) | (now & FE_UNDERFLOW ? ERROR_UNDER : 0) | (now & FE_INVALID ? ERROR_INVALID : 0);
}
#endif

static int pieces_raise(void* exception) {
    PyErr_SetObject((PyObject*)Py_TYPE(exception), exception);
    Py_DECREF((PyObject*)exception);
    return -1;
}

/* What a handler of signals has raised where it cannot be passed on is raised when Python next looks for signals. */
static void pieces_put_off(void) {
    PyObject *kind, *raised, *at;
    PyErr_Fetch(&kind, &raised, &at);
    PyErr_NormalizeException(&kind, &raised, &at);
    if (raised && Py_AddPendingCall(pieces_raise, Py_NewRef(raised))) Py_DECREF(raised);
    Py_XDECREF(kind), Py_XDECREF(raised), Py_XDECREF(at);
}

/* Which of them the program minds: all but those that NumPy's error state ignores, as it does with underflow unless it is told otherwise. */
static PyObject *error_variable, *errors_minded_method; /* NumPy's context variable, and what says which errors the program minds under its value */
static int errors_minded(void) {
    static PyObject* known; /* the value that was asked about */
    static int minded;
    PyObject *now = NULL, *found;
    if (error_variable == NULL) return ERRORS;
    if (PyContextVar_Get(error_variable, NULL, &now) < 0 || now == NULL) return PyErr_Clear(), ERRORS;
    if (now == known) {
        Py_DECREF(now);
        return minded;
    }
    found = PyObject_CallNoArgs(errors_minded_method);
    if (found == NULL || !PyLong_Check(found)) {
        if (found == NULL && (PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_MemoryError))) PyErr_Clear(); /* of asking, not a handler's */
        if (PyErr_Occurred()) pieces_put_off();
        Py_XDECREF(found), Py_DECREF(now);
        return ERRORS;
    }
    minded = (int)PyLong_AsLong(found);
    Py_DECREF(found);
    Py_XSETREF(known, now);
    return minded;
}

/* How many threads --------------------------------------------------------------------------------------------------------------------- */

#define PIECES_NS 60000 /* nanoseconds of work that are worth a second thread; each further one gets half of that */
#define PIECES_BYTE 0.06      /* nanoseconds of work on a byte, less are not worth that it goes from one processor's cache to another's */
#define PIECES_CACHE (6 << 20) /* bytes, more are in no processor's cache */
#define PIECES_FAR 0.03        /* nanoseconds for each of those */
#define PIECES_NEAR (2 << 20)  /* bytes, fewer stay in a processor's own cache: what is around it would fetch half of them from another one's */
#define PIECES_FETCH 2         /* so many times the work, from which on that does not matter */
static PyObject* pool_method; /* `pool()`: how many threads kernels have */
static int pieces_alone; /* what is computed is written over what it is computed from, which no other thread of the program, and no child, may see half written */
static int pieces_wanted; /* threads were, meanwhile: starting them runs code of Python's, and comes when all is done */
static PyObject* threads_name; /* of what `config` says of it */
static long long pieces_ns = PIECES_NS, pieces_shared; /* and how often several have computed something */

/* Have the threads started.  What a handler of signals raises meanwhile is raised when Python next looks for signals. */
static void pieces_begin(void) {
    PyObject *type, *value, *trace, *found;
    long count;
    PyErr_Fetch(&type, &value, &trace);
    found = PyObject_CallNoArgs(pool_method);
    count = found && PyLong_Check(found) ? PyLong_AsLong(found) : 1;
    if (PyErr_Occurred()) {
        pieces_put_off();
    } else {
        workers_start((int)(count > WORKERS_MOST ? WORKERS_MOST : count));
    }
    PyErr_Restore(type, value, trace);
    Py_XDECREF(found);
}

/* Have as many threads as were chosen (0: as there are), if there are fewer; how many were chosen.  The first time code of Python's runs. */
static long pieces_ready(void) {
    static long begun; /* the largest number that was asked for */
    PyObject* chosen = PyDict_GetItem(config_dict, threads_name);
    long most = chosen && PyLong_Check(chosen) ? PyLong_AsLong(chosen) : 0, wanted;
    if (most == -1 && PyErr_Occurred()) PyErr_Clear();
    wanted = most < 1 || most > WORKERS_MOST ? WORKERS_MOST : most;
    pieces_wanted = pieces_alone && wanted > begun;
    if (pool_method && wanted > begun && !pieces_alone) begun = wanted, pieces_begin();
    return most;
}

/* How many threads compute what takes one so many nanoseconds, and reads and writes so many bytes; see `pieces_ready`. */
static int pieces_threads(double ns, npy_intp bytes) {
    long most;
    if (bytes >= PIECES_CACHE) ns += PIECES_FAR * (double)bytes;
    else if (pieces_ns && ns < PIECES_BYTE * (double)bytes) return 1;
    if (ns < (double)pieces_ns) return 1;
    most = pieces_ready();
    if (WORKERS_COUNT < 2) return 1;
    if (most < 1 || most > WORKERS_COUNT) most = WORKERS_COUNT;
    return ns >= (double)pieces_ns / 2 * (double)most ? (int)most : (int)(ns / ((double)pieces_ns / 2));
}

/* The pieces ------------------------------------------------------------------------------------------------------------------------- */

typedef struct Pieces Pieces;
typedef int (*PieceFunction)(const Pieces*, npy_intp first, npy_intp count, int thread); /* which errors were raised for which the others need not go on */

struct Pieces {
    PieceFunction compute;
    int (*pause)(void* of); /* NULL, or what is called now and then when no thread computes, and has the rest left undone by a number other than 0 */
    void* of;
    long long until;             /* when the next pause is; 0: there is none */
    npy_intp whole, unit, piece; /* how many there are, elements of one of them, and elements that a thread takes at a time, or one of them */
    npy_intp each, next;         /* how many are a piece, and were given out */
    int basic;  /* IEEE arithmetic, whose flags are the vector unit's */
    int minded; /* the errors that are told of */
    int threads, raised;
    unsigned control; /* how the caller's thread rounds */
};

static void pieces_of(Pieces* self, PieceFunction compute, npy_intp whole, npy_intp unit, npy_intp piece, int basic, int minded) {
    *self = (Pieces){.compute = compute, .whole = whole, .unit = unit, .piece = piece, .basic = basic, .minded = minded};
}

#if defined(__GNUC__)
#define PIECES_ADD(number, by) __atomic_fetch_add(number, by, __ATOMIC_RELAXED)
#define PIECES_SEEN(number) __atomic_load_n(number, __ATOMIC_RELAXED)
#define PIECES_NOTE(number, bits) __atomic_fetch_or(number, bits, __ATOMIC_RELAXED)
#else /* there are no other threads */
#define PIECES_ADD(number, by) ((*(number) += (by)) - (by))
#define PIECES_SEEN(number) (*(number))
#define PIECES_NOTE(number, bits) (*(number) |= (bits))
#endif

/* Compute pieces as long as there are any; what each thread calls. */
static void pieces_share(void* data) {
    Pieces* self = data;
    int thread = PIECES_ADD(&self->threads, 1);
    npy_intp first;
    int errors = 0;
#ifdef LAZYNP_SSE
    unsigned own = _mm_getcsr() & ~0x3fu;
    _mm_setcsr(self->control);
#else
    int own = fegetround();
    fesetround((int)self->control);
#endif
    flags_clear(self->basic);
    while (!PIECES_SEEN(&self->raised) && (first = PIECES_ADD(&self->next, self->each)) < self->whole) {
        npy_intp left = self->whole - first;
        if ((errors = self->compute(self, first, left < self->each ? left : self->each, thread))) PIECES_NOTE(&self->raised, errors);
        if (self->until && now_ns() > self->until) break;
    }
    if ((errors = flags_raised(self->basic) & self->minded)) PIECES_NOTE(&self->raised, errors);
#ifdef LAZYNP_SSE
    _mm_setcsr(own);
#else
    fesetround(own);
#endif
}

/* All that no thread has taken yet, or as much of it as is computed until the next pause. */
static int pieces_run(Pieces* self, int threads) {
    self->each = self->piece > self->unit ? self->piece / self->unit : 1;
    self->threads = self->raised = 0;
    PIECES_ADD(&pieces_shared, 1);
#ifdef LAZYNP_SSE
    self->control = _mm_getcsr() & ~0x3fu;
#else
    self->control = (unsigned)fegetround();
#endif
    workers_run(pieces_share, self, threads);
    return self->raised;
}

#define PIECES_LONG 10000 /* nanoseconds, from which on other threads of the program may run meanwhile */

static int other_threads(void) {
    PyThreadState* one = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    return one && PyThreadState_Next(one) != NULL;
}

#define PIECES_PAUSE 30000000 /* nanoseconds after which handlers of signals run */
static long long pieces_pause = PIECES_PAUSE, pieces_paused; /* and how often there was a pause */

/* Compute all of it by so many threads, one of which would take `ns`; which errors were raised, or what a pause said. */
static int pieces_do(Pieces* self, int threads, double ns) {
    int raised, pauses = self->pause && !pieces_alone && ns >= (double)pieces_pause / 16 /* some do not know what they take */;
    for (self->next = 0;;) {
        PyThreadState* saved = ns >= PIECES_LONG && !pieces_alone && other_threads() ? PyEval_SaveThread() : NULL;
        self->until = pauses ? now_ns() + pieces_pause : 0;
        if (threads > 1 || pauses) {
            raised = pieces_run(self, threads);
        } else {
            flags_clear(self->basic);
            raised = self->compute(self, 0, self->whole, 0);
            raised |= flags_raised(self->basic) & self->minded;
        }
        if (saved) PyEval_RestoreThread(saved);
        if (raised || !pauses || self->next >= self->whole) return raised;
        pieces_paused++;
        if ((raised = self->pause(self->of))) return raised;
    }
}

#endif
