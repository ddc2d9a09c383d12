/* Threads that compute what is cut into pieces: kernels, expressions in one pass, large calls of one of NumPy's loops.

   In: a function and its data, and how many threads may come.  Out: the function has run on the calling thread and on up to as many others as
   were asked for, and all of them are done.  The function claims pieces from a counter in its data, so it does not matter how many come: one is
   enough.  Promise: no thread starts before a call wants one; they know nothing of Python and take no signal; the calling thread never waits for one
   that has not begun; a call from inside a piece, or while the threads work for another call, is the calling thread's alone, and so is
   every call in a child after `fork`; threads that spin when the process ends do no harm.  While the program has something compiled beside it, the
   last core is left to the compiler (`workers_spare`): what it makes takes a quarter of the time of what runs meanwhile. */

#ifndef LAZYNP_WORKERS_H
#define LAZYNP_WORKERS_H

#include <stdint.h>
#include <time.h>

typedef void (*Body)(void* data);
#define WORKERS_MOST 1024

static inline long long now_ns(void) {
#ifdef CLOCK_MONOTONIC
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
#else
    return 0;
#endif
}

#if defined(__GNUC__) && !defined(_WIN32)
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define WORKERS_SPIN 50000       /* nanoseconds that a worker looks for more work before it sleeps; a wake-up costs about as much */
#define WORKERS_STACK (8 << 20)  /* bytes: threads of some systems have few */
#define APART __attribute__((aligned(128))) /* of what one thread writes and others read */

/* One word, the gate, says everything: the number of the call (bits 32 and up), how many helpers it wants (16 to 30), whether it is closed (15)
   and how many have entered (0 to 14).  A helper enters by adding 1 to an open gate; the caller closes it when its own share is done and then waits
   only for those inside.  So body and data, read after entering, are those of the same call. */
static struct {
    uint64_t gate APART;
    int left APART;   /* helpers that are done */
    int busy APART;   /* the pieces of a call are in work */
    int parked APART; /* helpers that sleep */
    Body body APART;
    void* data;
    long spins; /* turns of a waiting loop in WORKERS_SPIN */
    int count;  /* threads there are, that of the caller being one */
    int gone;   /* it is a child after a fork */
    int cores;  /* that one may use, while one of them is left to others; else 0 */
    int64_t until; /* and until when, in nanoseconds */
} workers = {.count = 1};
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t workers_called = PTHREAD_COND_INITIALIZER;
#define GATE_SHUT 0x8000u
#define GATE_ENTERED(gate) ((gate) & 0x7fff)
#define GATE_WANTED(gate) ((gate) >> 16 & 0x7fff)
#define GATE_CALL(gate) ((gate) >> 32)

static inline void workers_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Wake as many as are wanted. */
static void workers_wake(int wanted, int asleep) {
    pthread_mutex_lock(&workers_lock); /* no helper is between looking at the gate and sleeping */
    pthread_mutex_unlock(&workers_lock);
    if (wanted < asleep) while (wanted--) pthread_cond_signal(&workers_called);
    else pthread_cond_broadcast(&workers_called);
}

/* Leave one of `cores` to others for so many nanoseconds; 0 takes it back. */
static void workers_spare(int cores, int64_t ns) {
    __atomic_store_n(&workers.until, now_ns() + ns, __ATOMIC_RELAXED);
    __atomic_store_n(&workers.cores, ns ? cores : 0, __ATOMIC_RELAXED);
}

/* How many helpers may come where one is wanted for every core. */
static NOT_INLINED int workers_spared(int wanted, int cores) {
    if (now_ns() < __atomic_load_n(&workers.until, __ATOMIC_RELAXED)) return cores - 2;
    __atomic_store_n(&workers.cores, 0, __ATOMIC_RELAXED);
    return wanted;
}

static void workers_run(Body body, void* data, int32_t threads) {
    uint64_t inside;
    int wanted = threads > WORKERS_MOST ? WORKERS_MOST - 1 : threads - 1, asleep, cores = __atomic_load_n(&workers.cores, __ATOMIC_RELAXED);
    if (cores && wanted >= cores - 1) wanted = workers_spared(wanted, cores);
    if (wanted < 1 || __atomic_exchange_n(&workers.busy, 1, __ATOMIC_ACQUIRE)) {
        body(data);
        return;
    }
    workers.body = body, workers.data = data;
    __atomic_store_n(&workers.left, 0, __ATOMIC_RELAXED);
    __atomic_exchange_n(&workers.gate, (GATE_CALL(workers.gate) + 1) << 32 | (uint64_t)wanted << 16, __ATOMIC_SEQ_CST);
    if ((asleep = __atomic_load_n(&workers.parked, __ATOMIC_SEQ_CST)) > 0) workers_wake(wanted, asleep);
    body(data);
    inside = GATE_ENTERED(__atomic_fetch_or(&workers.gate, GATE_SHUT, __ATOMIC_ACQ_REL));
    for (long turn = 0; (uint64_t)__atomic_load_n(&workers.left, __ATOMIC_ACQUIRE) != inside; turn++) {
        workers_pause();
        if (turn > workers.spins) sched_yield();
    }
    __atomic_store_n(&workers.busy, 0, __ATOMIC_RELEASE);
}

/* The gate of the next call after `seen`, once there is one. */
static uint64_t workers_next(uint64_t seen) {
    uint64_t gate;
    for (long turn = 0; turn < workers.spins; turn++) {
        if (GATE_CALL(gate = __atomic_load_n(&workers.gate, __ATOMIC_ACQUIRE)) != seen) return gate;
        workers_pause();
    }
    pthread_mutex_lock(&workers_lock);
    __atomic_fetch_add(&workers.parked, 1, __ATOMIC_SEQ_CST);
    while (GATE_CALL(gate = __atomic_load_n(&workers.gate, __ATOMIC_SEQ_CST)) == seen) pthread_cond_wait(&workers_called, &workers_lock);
    __atomic_fetch_sub(&workers.parked, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&workers_lock);
    return gate;
}

static void* workers_work(void* unused) {
    (void)unused;
    for (uint64_t seen = 0;;) {
        uint64_t gate = workers_next(seen);
        for (;;) {
            seen = GATE_CALL(gate);
            if (gate & GATE_SHUT || GATE_ENTERED(gate) >= GATE_WANTED(gate)) break;
            if (!__atomic_compare_exchange_n(&workers.gate, &gate, gate + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
            workers.body(workers.data);
            __atomic_fetch_add(&workers.left, 1, __ATOMIC_RELEASE);
            break;
        }
    }
    return NULL;
}

/* In a child after a fork there are no others, and one that was just going to sleep has left the lock taken. */
static void workers_gone(void) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t called = PTHREAD_COND_INITIALIZER;
    workers_lock = lock, workers_called = called;
    workers.count = 1, workers.parked = 0, workers.gone = 1, workers.busy = 1; /* for ever: every call is the caller's alone */
}

static long workers_spins(void) {
    const long turns = 200;
    long took;
    long long from = now_ns();
    for (long turn = 0; turn < turns && __atomic_load_n(&workers.gate, __ATOMIC_ACQUIRE) != ~(uint64_t)0; turn++) workers_pause();
    took = (long)(now_ns() - from);
    return WORKERS_SPIN / (took < 100 ? 100 : took) * turns + 1;
}

/* Start threads until there are `count`, the caller's being one; how many there are, which is fewer where the system has no more. */
static int workers_start(int count) {
    static int watched;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    if (count <= workers.count || workers.gone) return workers.count;
    if (!watched && pthread_atfork(NULL, NULL, workers_gone)) return 1;
    if (pthread_attr_init(&attributes)) return workers.count;
    if (!watched++) workers.spins = workers_spins();
    pthread_attr_setstacksize(&attributes, WORKERS_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (workers.count < count && workers.count < WORKERS_MOST && pthread_create(&thread, &attributes, workers_work, NULL) == 0) workers.count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return workers.count;
}
#define WORKERS_ADDRESS ((uintptr_t)workers_run)
#define WORKERS_COUNT workers.count
#else
static void workers_run(Body body, void* data, int32_t threads) { (void)threads, body(data); }
static int workers_start(int count) { return (void)count, 1; }
static void workers_spare(int cores, int64_t ns) { (void)cores, (void)ns; }
#define WORKERS_ADDRESS ((uintptr_t)0)
#define WORKERS_COUNT 1
#endif

#endif
