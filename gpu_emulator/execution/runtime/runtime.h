// What the parts of the emulator's runtime know of each other.
//
// One launch at a time, on one thread of the host: everything here is plain global state.  A violation unwinds to the launch by `fail`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator {

struct Vector {
    unsigned x, y, z;
};

struct Kernel { // device/cuda.h
    const char* name;
    const char* unit;
    void (*run)(const char* arguments);
    unsigned count;
    const unsigned *sizes, *offsets;
    unsigned bytes;
    char *shared, *shared_end;
    int bounds;
};

// The C side of emulator.module: ctypes structures mirror these two.
struct Launch {
    Vector grid, block;
    unsigned shared; // dynamic, in bytes
    int order;       // 0 ascending, 1 descending, 2 random
    uint64_t seed;
    uint64_t first, blocks; // the part of the grid that runs, in linear numbers
    int races, trace;
    double seconds; // of processor time, then it is called endless
};

struct Result {
    char message[1024];
    uint64_t pc, other; // addresses of instructions in a module, 0 where not known
    int line;           // 0 where not known: then pc says it
    Vector block, thread;
};

struct Thread; // scheduler.cpp

// scheduler.cpp
extern const Kernel* kernel;
extern const Launch* launch;
extern Result* result;
extern unsigned current;       // the thread that runs, its linear number in the block
extern uint64_t current_block; // and its block
extern unsigned threads;       // per block
extern uint64_t barriers;      // that the block has passed
unsigned warp_syncs(unsigned thread); // that the warp of this thread has passed, all its lanes together

[[noreturn]] void fail(uint64_t pc, int line, const char* format, ...) __attribute__((format(printf, 3, 4)));
const char* space_of(uintptr_t address, char* text, size_t size, unsigned bytes = 1); // "12 bytes past the end of a buffer of 400 bytes"

// context.cpp: stacks for threads that wait
struct Worker;
void prepare_workers(void (*loop)());
Worker* new_worker();
void give_back(Worker*);
void switch_to(Worker* from, Worker* to); // nullptr: the launch itself
void discard_workers();
bool on_stack(uintptr_t address, bool* overflow);

// faults.cpp
void watch_faults(void (*run)()); // runs it; faults meanwhile and `fail` end here
[[noreturn]] void leave();

// memory.cpp
struct Buffer {
    uintptr_t address;
    size_t size;
    uintptr_t mapping;
    size_t mapped;
    void* shadow;
    bool live;
};
Buffer* find_buffer(uintptr_t address); // whose pages hold the address, guard pages too
void check_canaries();
char* dynamic_shared(unsigned size);
bool in_dynamic(uintptr_t address, unsigned size, size_t* offset);

// accesses.cpp: callbacks of instrumented code
void begin_launch_accesses();
void begin_block_accesses();
void end_block_accesses();
} // namespace emulator

#define PC ((uint64_t)__builtin_return_address(0))
