// Faults of a running kernel become errors; everybody else's go where they went before.
//
// The handlers stand only while a kernel runs, on a stack of their own, and take faults only of the thread that runs it: Python's
// faulthandler and whatever else was installed is put back afterwards, and is handed faults of other threads meanwhile.
#include "runtime.h"

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

namespace emulator {
static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM};
constexpr int COUNT = sizeof SIGNALS / sizeof *SIGNALS;
static struct sigaction before[COUNT];
static sigjmp_buf back;
static volatile bool running;
static pid_t runner;

static pid_t thread_id() { return (pid_t)syscall(SYS_gettid); }

void leave() { siglongjmp(back, 1); }

void fail(uint64_t pc, int line, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->message, sizeof result->message, format, arguments);
    va_end(arguments);
    result->pc = pc;
    result->line = line;
    uint64_t b = current_block;
    unsigned t = current;
    const Vector &grid = launch->grid, &block = launch->block;
    result->block = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
    result->thread = {t % block.x, t / block.x % block.y, t / block.x / block.y};
    leave();
}

static uint64_t counter_of(void* context) {
#if defined(__x86_64__)
    return (uint64_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] + 1; // callers' addresses are behind the call as well
#elif defined(__aarch64__)
    return ((ucontext_t*)context)->uc_mcontext.pc + 1;
#else
    (void)context;
    return 0;
#endif
}

static void handle(int signal, siginfo_t* info, void* context) {
    int k = 0;
    while (SIGNALS[k] != signal) k++;
    if (!running || thread_id() != runner) { // not ours: as if we were not here
        if (running && signal == SIGVTALRM) {
            syscall(SYS_tgkill, getpid(), runner, SIGVTALRM); // the timer is the process's, but the kernel's thread has to hear it
            return;
        }
        if ((before[k].sa_flags & SA_SIGINFO) && before[k].sa_sigaction)
            before[k].sa_sigaction(signal, info, context);
        else if (before[k].sa_handler != SIG_DFL && before[k].sa_handler != SIG_IGN)
            before[k].sa_handler(signal);
        else
            sigaction(signal, &before[k], nullptr); // it happens again at once
        return;
    }
    running = false; // a fault in what follows is not the kernel's
    uint64_t pc = counter_of(context);
    char text[256];
    bool overflow = false;
    switch (signal) {
    case SIGFPE: fail(pc, 0, "integer division by zero, or of the lowest number by -1");
    case SIGILL: fail(pc, 0, "undefined behaviour: the compiler knew that this is never reached");
    case SIGVTALRM: fail(pc, 0, "endless: no end after %g s of processor time", launch->seconds);
    default:
        if (on_stack((uintptr_t)info->si_addr, &overflow)) fail(pc, 0, "stack overflow");
        fail(pc, 0, "illegal access to address %p: %s", info->si_addr, space_of((uintptr_t)info->si_addr, text, sizeof text));
    }
}

void watch_faults(void (*run)()) {
    static char* stack = (char*)mmap(nullptr, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t ours = {}, theirs = {};
    ours.ss_sp = stack;
    ours.ss_size = 64 << 10;
    sigaltstack(&ours, &theirs);
    runner = thread_id();
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int k = 0; k < COUNT; k++) sigaction(SIGNALS[k], &action, &before[k]);
    itimerval timer = {}, timer_before = {};
    timer.it_value.tv_sec = (time_t)launch->seconds;
    timer.it_value.tv_usec = (suseconds_t)((launch->seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_VIRTUAL, &timer, &timer_before);
    if (!sigsetjmp(back, 1)) {
        running = true;
        run();
    } else {
        discard_workers();
    }
    running = false;
    setitimer(ITIMER_VIRTUAL, &timer_before, nullptr);
    for (int k = 0; k < COUNT; k++) sigaction(SIGNALS[k], &before[k], nullptr);
    sigaltstack(&theirs, nullptr);
}
} // namespace emulator
