// The callbacks of instrumented code: g++ inserts a call before every access to memory, as for its thread sanitizer, whose library is not
// here.
//
// In: address, size, kind.  Out: the access, located, for the race detector and the trace.  Promise: an access to anything but live
// device memory, the block's shared memory, the thread's stack and the module's constants is an error, to the byte.
#include "accesses.h"

#include <link.h>

extern "C" char* emulator_dynamic;

namespace emulator {
static size_t static_shared;
static const Kernel* known; // whose module is `image`
static uintptr_t image[2], own[2];

static void find_image(const void* inside, uintptr_t range[2]) {
    struct Search {
        uintptr_t inside, *range;
    } search = {(uintptr_t)inside, range};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
            auto* search = (Search*)data;
            uintptr_t low = ~(uintptr_t)0, high = 0;
            for (int k = 0; k < info->dlpi_phnum; k++) {
                if (info->dlpi_phdr[k].p_type != PT_LOAD) continue;
                uintptr_t start = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr, end = start + info->dlpi_phdr[k].p_memsz;
                if (start < low) low = start;
                if (end > high) high = end;
            }
            if (search->inside < low || search->inside >= high) return 0;
            search->range[0] = low;
            search->range[1] = high;
            return 1;
        },
        &search);
}

void begin_launch_accesses() {
    if (known != kernel) find_image((const void*)kernel->run, image);
    if (!own[1]) find_image(&emulator_dynamic, own);
    known = kernel;
    static_shared = (size_t)(kernel->shared_end - kernel->shared);
    if (launch->races) races_begin_launch();
    if (launch->trace) trace_begin_launch();
}

void begin_block_accesses() {
    if (launch->races) races_begin_block(static_shared + (launch->shared + 15) / 16 * 16);
}

void end_block_accesses() {
    if (launch->trace) trace_end_block();
}

static bool locate(Access& access) {
    uintptr_t at = access.address;
    bool overflow;
    if (on_stack(at, &overflow)) return false;
    if (at >= (uintptr_t)kernel->shared && at < (uintptr_t)kernel->shared_end) {
        access.space = SHARED;
        access.offset = at - (uintptr_t)kernel->shared;
        return true;
    }
    if (in_dynamic(at, access.size, &access.offset)) {
        access.space = SHARED;
        access.offset += static_shared;
        return true;
    }
    Buffer* buffer = find_buffer(at);
    if (buffer && buffer->live && at >= buffer->address && at + access.size <= buffer->address + buffer->size) {
        access.space = GLOBAL;
        access.buffer = buffer;
        access.offset = at - buffer->address;
        return true;
    }
    if (at >= own[0] && at < own[1]) return false; // the pointer to dynamic shared memory
    if (at >= image[0] && at < image[1] && !access.write) return false; // a table of constants
    char text[256];
    int line = access.pc & LINE ? (int)(access.pc & ~LINE) : 0;
    fail(line ? 0 : access.pc, line, "illegal %s of %u bytes at %#zx: %s", access.write ? "write" : "read", access.size, (size_t)at,
         space_of(at, text, sizeof text, access.size));
}

static void look(uintptr_t address, unsigned size, bool write, bool atomic, uint64_t pc) {
    Access access = {address, size, write, atomic, GLOBAL, nullptr, 0, pc};
    if (!locate(access)) return;
    if (atomic && access.space == SHARED && !(pc & LINE)) access.atomic = false; // volatile orders nothing between the threads of a block
    if (launch->races) races_look(access);
    if (launch->trace) trace_look(access);
}

extern "C" {
void emulator_fence(int scope) {
    if (launch->races && scope > 0) races_fence();
}
void emulator_atomic(const void* address, int size, int line) {
    if ((uintptr_t)address % (unsigned)size) fail(0, line, "misaligned atomic: %p is no multiple of %d", address, size);
    if (launch->races || launch->trace) look((uintptr_t)address, (unsigned)size, true, true, LINE | (uint64_t)line);
}

void __tsan_init() {}
#define CALLBACKS(size)                                                                                                               \
    void __tsan_read##size(uintptr_t at) { look(at, size, false, false, PC); }                                                        \
    void __tsan_write##size(uintptr_t at) { look(at, size, true, false, PC); }                                                        \
    void __tsan_volatile_read##size(uintptr_t at) { look(at, size, false, true, PC); }                                                \
    void __tsan_volatile_write##size(uintptr_t at) { look(at, size, true, true, PC); }                                                \
    void __tsan_unaligned_read##size(uintptr_t at) { look(at, size, false, false, PC); }                                              \
    void __tsan_unaligned_write##size(uintptr_t at) { look(at, size, true, false, PC); }                                              \
    void __tsan_unaligned_volatile_read##size(uintptr_t at) { look(at, size, false, true, PC); }                                      \
    void __tsan_unaligned_volatile_write##size(uintptr_t at) { look(at, size, true, true, PC); }
CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(4)
CALLBACKS(8)
CALLBACKS(16)
void __tsan_read_range(uintptr_t at, size_t size) {
    if (size) look(at, (unsigned)size, false, false, PC);
}
void __tsan_write_range(uintptr_t at, size_t size) {
    if (size) look(at, (unsigned)size, true, false, PC);
}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}
}
} // namespace emulator
