// Stacks and the switch between them.
//
// A worker is a stack with a loop that runs threads of the kernel one after the other; a thread that waits keeps its worker and another
// goes on.  So a kernel that never waits is a plain loop on one stack.  x86-64 has a switch of its own, other machines use ucontext.
#include "runtime.h"

#include <sys/mman.h>

#if !defined(__x86_64__)
#define EMULATOR_UCONTEXT 1
#endif
#ifdef EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

namespace emulator {
constexpr size_t STACK = 128 << 10, GUARD = 64 << 10;
constexpr unsigned WORKERS = 1025; // one may still run while 1024 wait

struct Worker {
#ifdef EMULATOR_UCONTEXT
    ucontext_t context;
#else
    void* stack;
#endif
    Worker* next;
};

static Worker workers[WORKERS], home;
static Worker* unused;
static unsigned made;
static char* stacks;
static void (*loop)();

#ifndef EMULATOR_UCONTEXT
extern "C" void emulator_switch(void** save, void* load);
asm(R"(
    .text
    .globl emulator_switch
    .hidden emulator_switch
    .type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .size emulator_switch, .-emulator_switch
)");
#endif

void prepare_workers(void (*body)()) {
    loop = body;
    if (stacks) return;
    void* got = mmap(nullptr, WORKERS * (STACK + GUARD), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        perror("emulator: no memory for stacks");
        abort();
    }
    stacks = (char*)got;
}

Worker* new_worker() {
    if (unused) {
        Worker* worker = unused;
        unused = worker->next;
        return worker;
    }
    if (made == WORKERS) abort(); // there are never more threads
    char* bottom = stacks + made * (STACK + GUARD) + GUARD;
    Worker* worker = &workers[made++];
    mprotect(bottom, STACK, PROT_READ | PROT_WRITE);
#ifdef EMULATOR_UCONTEXT
    getcontext(&worker->context);
    worker->context.uc_stack.ss_sp = bottom;
    worker->context.uc_stack.ss_size = STACK;
    worker->context.uc_link = nullptr;
    makecontext(&worker->context, loop, 0);
#else
    void** top = (void**)(bottom + STACK);
    *--top = nullptr; // where a caller would have left its address: `loop` begins 8 bytes off a multiple of 16
    *--top = (void*)loop;
    top -= 6; // registers
    memset(top, 0, 6 * sizeof(void*));
    worker->stack = top;
#endif
    return worker;
}

void give_back(Worker* worker) {
    worker->next = unused;
    unused = worker;
}

void switch_to(Worker* from, Worker* to) {
    if (!from) from = &home;
    if (!to) to = &home;
    if (from == to) return;
#ifdef EMULATOR_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    emulator_switch(&from->stack, to->stack);
#endif
}

// After an error the stacks hold threads that will never go on.
void discard_workers() {
    unused = nullptr;
    made = 0;
}

bool on_stack(uintptr_t address, bool* overflow) {
    uintptr_t begin = (uintptr_t)stacks;
    if (!stacks || address < begin || address >= begin + WORKERS * (STACK + GUARD)) return false;
    *overflow = (address - begin) % (STACK + GUARD) < GUARD;
    return true;
}
} // namespace emulator
