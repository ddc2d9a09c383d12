// What instrumented code tells of each access, sorted by kind of memory.
#pragma once
#include "runtime.h"

namespace emulator {
enum Space { GLOBAL, SHARED };

struct Access {
    uintptr_t address;
    unsigned size;
    bool write, atomic;
    Space space;
    Buffer* buffer;  // of global memory
    size_t offset; // in the buffer, or in the block's shared memory: static, then dynamic
    uint64_t pc;     // or LINE | the line itself
};
constexpr uint64_t LINE = 1ull << 63;

// races.cpp
void races_begin_launch();
void races_begin_block(size_t shared_bytes);
void races_look(const Access&);
void races_fence();

// trace.cpp
void trace_begin_launch();
void trace_look(const Access&);
void trace_end_block();
} // namespace emulator
