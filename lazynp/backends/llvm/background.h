/* Modules compiled by a thread that knows nothing of Python.

   In: the text of a module, and LLVM's own functions and objects.  Out: its machine code, some time later.  Promise: one thread, which is there
   while there is work; it holds no lock of Python's, runs no code of Python's and takes no signal; `fork` waits until it is between two
   modules, and in the child what was not done is refused. */

#ifndef LAZYNP_BACKGROUND_H
#define LAZYNP_BACKGROUND_H

#include <Python.h>

#ifndef _WIN32
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK (8 << 20) /* bytes: threads of some systems have too few for LLVM */
#define INTERNAL 8      /* LLVM's number of the linkage */
#define A_MOMENT 200    /* microseconds */

/* LLVM's functions, in this order (`background.py`). */
static struct {
    void* (*context_create)(void);
    void (*context_dispose)(void*);
    void* (*parse)(void* context, const char* text, char** error);
    int (*verify)(void* module, char** error); /* a bool */
    void (*set_target)(void* module, const char*);
    void (*set_layout)(void* module, const char*);
    void* (*function)(void* module, const char* name);
    void (*set_linkage)(void* function, int);
    void (*run)(void* passes, void* module, void* builder);
    void* (*emit)(void* machine, void* module, int object, char** error);
    void* (*start)(void* buffer);
    size_t (*size)(void* buffer);
    void (*buffer_dispose)(void* buffer);
    void (*module_dispose)(void* module);
    void (*string_dispose)(char*);
} llvm;
#define LLVM_FUNCTIONS ((int)(sizeof(llvm) / sizeof(void*)))

enum { WAITING, DONE, REFUSED };

typedef struct Work {
    struct Work* next;
    char *text, *triple, *layout;
    char* hidden;                            /* functions that become private once loops have their variants: names ended by zeros, then a zero */
    void *passes, *tidy, *builder, *machine; /* of this work only */
    char* code;
    size_t size;
    int state; /* written last */
} Work;

static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER; /* held while LLVM is at work; taken before the next one */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static Work *first, *last; /* of what has not begun */
static int running, stopped, forking;

static int state_of(Work* work) { return __atomic_load_n(&work->state, __ATOMIC_ACQUIRE); }
static void end_as(Work* work, int state) { __atomic_store_n(&work->state, state, __ATOMIC_RELEASE); }

static int is_stopped(void) { return __atomic_load_n(&stopped, __ATOMIC_ACQUIRE); }

static int work_refused(Work* work, void* module) {
    char* error = NULL;
    void* buffer;
    if (llvm.verify(module, &error) & 0xff) {
        if (error) llvm.string_dispose(error);
        return 1;
    }
    if (error) llvm.string_dispose(error);
    if (is_stopped()) return 1;
    llvm.set_target(module, work->triple);
    llvm.set_layout(module, work->layout);
    llvm.run(work->passes, module, work->builder);
    for (const char* name = work->hidden; *name; name += strlen(name) + 1) {
        void* function = llvm.function(module, name);
        if (function) llvm.set_linkage(function, INTERNAL);
    }
    llvm.run(work->tidy, module, work->builder);
    if (is_stopped()) return 1;
    error = NULL;
    buffer = llvm.emit(work->machine, module, 1, &error);
    if (error) llvm.string_dispose(error);
    if (buffer == NULL) return 1;
    work->size = llvm.size(buffer);
    work->code = malloc(work->size ? work->size : 1);
    if (work->code) memcpy(work->code, llvm.start(buffer), work->size);
    llvm.buffer_dispose(buffer);
    return work->code == NULL;
}

static void work_do(Work* work) {
    char* error = NULL;
    void* context = llvm.context_create();
    void* module = context ? llvm.parse(context, work->text, &error) : NULL;
    int refused = module == NULL || error != NULL;
    if (error) llvm.string_dispose(error);
    if (!refused) refused = work_refused(work, module);
    if (module) llvm.module_dispose(module);
    if (context) llvm.context_dispose(context);
    end_as(work, refused ? REFUSED : DONE);
}

static void* work_all(void* unused) {
    for (;;) {
        Work* work;
        while (__atomic_load_n(&forking, __ATOMIC_ACQUIRE)) usleep(A_MOMENT);
        pthread_mutex_lock(&compiling);
        pthread_mutex_lock(&queue_lock);
        work = first;
        if (work) first = work->next;
        if (first == NULL) last = NULL;
        running = work != NULL;
        pthread_mutex_unlock(&queue_lock);
        if (work) work_do(work);
        pthread_mutex_unlock(&compiling);
        if (work == NULL) return unused;
    }
}

/* Refuse what has not begun; with the queue's lock. */
static void queue_refuse(void) {
    for (Work* work = first; work; ) {
        Work* next = work->next;
        end_as(work, REFUSED);
        work = next;
    }
    first = last = NULL;
}

static void fork_begins(void) {
    __atomic_add_fetch(&forking, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&compiling);
    pthread_mutex_lock(&queue_lock);
}

static void fork_is_over(void) {
    pthread_mutex_unlock(&queue_lock);
    pthread_mutex_unlock(&compiling);
    __atomic_sub_fetch(&forking, 1, __ATOMIC_ACQ_REL);
}

static void fork_in_child(void) {
    running = 0;
    queue_refuse();
    fork_is_over();
}

static int thread_start(void) {
    static int watched;
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    int failed;
    if (!watched && pthread_atfork(fork_begins, fork_is_over, fork_in_child)) return 0;
    watched = 1;
    if (pthread_attr_init(&attributes)) return 0;
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, &attributes, work_all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

/* Hand over work; whether a thread does it. */
static int work_begin(Work* work) {
    int taken = 0;
    pthread_mutex_lock(&queue_lock);
    if (!stopped) {
        if (last) last->next = work;
        else first = work;
        last = work;
        taken = running || (running = thread_start());
        if (!taken) first = last = NULL; /* nothing else was there: no thread runs */
    }
    if (!taken) end_as(work, REFUSED);
    pthread_mutex_unlock(&queue_lock);
    return taken;
}

/* Take back what has not begun: it is refused then. */
static void work_take_back(Work* work) {
    Work* before = NULL;
    pthread_mutex_lock(&queue_lock);
    for (Work* each = first; each; before = each, each = each->next) {
        if (each != work) continue;
        if (before) before->next = each->next;
        else first = each->next;
        if (last == each) last = before;
        end_as(work, REFUSED);
        break;
    }
    pthread_mutex_unlock(&queue_lock);
}

/* Wait until LLVM is between two modules, and stays there; without Python's lock, which `fork` holds in the functions above. */
static void work_pause(void) {
    __atomic_add_fetch(&forking, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&compiling);
    pthread_mutex_unlock(&compiling);
}

static void work_go_on(void) { __atomic_sub_fetch(&forking, 1, __ATOMIC_ACQ_REL); }

static void work_await(Work* work) {
    while (state_of(work) == WAITING) usleep(A_MOMENT);
}

/* Wait for what is in work, which ends as soon as it can, refuse all that is not, and what will come. */
static void work_stop(void) {
    pthread_mutex_lock(&queue_lock);
    __atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
    queue_refuse();
    pthread_mutex_unlock(&queue_lock);
    pthread_mutex_lock(&compiling);
    pthread_mutex_unlock(&compiling);
}

static void work_free(Work* work) {
    free(work->text), free(work->triple), free(work->layout), free(work->hidden), free(work->code), free(work);
}

static char* copied(const char* from, Py_ssize_t size) {
    char* copy = malloc((size_t)size + 1);
    if (copy) memcpy(copy, from, (size_t)size), copy[size] = 0;
    return copy;
}

static Work* work_new(const char* text, Py_ssize_t n, const char* triple, Py_ssize_t t, const char* layout, Py_ssize_t l, const char* hidden, Py_ssize_t h) {
    Work* work = calloc(1, sizeof(Work));
    if (work == NULL) return NULL;
    work->text = copied(text, n), work->triple = copied(triple, t), work->layout = copied(layout, l), work->hidden = copied(hidden, h);
    if (work->text && work->triple && work->layout && work->hidden) return work;
    work_free(work);
    return NULL;
}

static void llvm_is(int k, void* function) { memcpy((char*)&llvm + (size_t)k * sizeof(void*), &function, sizeof(void*)); }

#else
#error "there is no such thread on Windows"
#endif
#endif
