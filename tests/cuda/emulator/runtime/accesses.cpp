#include "runtime.h"
namespace emulator {
void begin_launch_accesses() {}
void begin_block_accesses() {}
void end_block_accesses() {}
extern "C" {
size_t emulator_shadow_bytes(size_t size) { return size; }
int emulator_trace(void*, int) { return 0; }
void emulator_fence(int) {}
void emulator_atomic(const void* address, int size, int line) {
    if ((uintptr_t)address % (unsigned)size) fail(0, line, "misaligned atomic: %p is no multiple of %d", address, size);
}
}
}
