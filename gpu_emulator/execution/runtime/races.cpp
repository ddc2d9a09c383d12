// Conflicting accesses that nothing orders.
//
// Two accesses to a byte conflict if one writes and not both are atomic.  Threads of a block are ordered by a barrier between, those of a
// warp also by a __syncwarp of all its lanes (a shuffle orders nothing).  Blocks are ordered only by release and acquire: a
// __threadfence, then an atomic or volatile access, and another block's atomic or volatile access to the same place afterwards.  Promise:
// what is found does not depend on the order that the threads ran in, as far as these rules go.
#include "accesses.h"

#include <algorithm>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

namespace emulator {
// Who accessed a byte in one way since the last barrier: the last thread, and the others together.
struct Accessors {
    uint64_t pc;     // of the last one
    uint32_t block;  // serial number, from 1; 0: nobody
    uint32_t epoch;  // barriers before
    uint32_t events; // fences and atomics before, in the launch
    uint16_t last, last_syncs;
    uint16_t others_warp, others_syncs; // NOBODY, SEVERAL, or one warp and the latest of its accesses
};
enum : uint16_t { NOBODY = 0xffff, SEVERAL = 0xfffe };
enum Kind { READS, WRITES, ATOMICS, KINDS };
struct Cell {
    Accessors by[KINDS];
};

static uint32_t serial, first_serial, events;
static std::vector<Cell> shared;
static uint32_t fences[1024]; // by thread: the event of its last fence in this block
using Blocks = std::unordered_map<uint32_t, uint32_t>; // by block: what it did before this event is seen
static std::unordered_map<uintptr_t, Blocks> released; // by address
static Blocks acquired;                                // by the block that runs
static std::unordered_map<uint32_t, uint64_t> numbers; // of blocks, by serial

extern "C" size_t emulator_shadow_bytes(size_t size) { return size * sizeof(Cell); }

void races_begin_launch() {
    first_serial = serial + 1;
    events = 0;
    released.clear();
    numbers.clear();
}

void races_begin_block(size_t shared_bytes) {
    serial++;
    numbers[serial] = current_block;
    acquired.clear();
    std::fill(fences, fences + 1024, 0);
    if (shared.size() < shared_bytes) shared.resize(shared_bytes);
}

void races_fence() { fences[current] = ++events; }

static void exchange(uintptr_t address) {
    events++;
    Blocks& place = released[address];
    for (auto& [block, event] : place)
        if (block != serial) acquired[block] = std::max(acquired[block], event);
    if (!fences[current]) return;
    place[serial] = std::max(place[serial], fences[current]);
    for (auto& [block, event] : acquired) place[block] = std::max(place[block], event);
}

static Cell* cells(const Access& access) {
    if (access.space == SHARED) return &shared[access.offset];
    Buffer& buffer = *access.buffer;
    if (!buffer.shadow) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        buffer.shadow = mmap(nullptr, emulator_shadow_bytes(buffer.size), PROT_READ | PROT_WRITE, flags, -1, 0);
        if (buffer.shadow == MAP_FAILED) fail(0, 0, "no memory to watch a buffer of %zu bytes", buffer.size);
    }
    return (Cell*)buffer.shadow + access.offset;
}

// Is this access after all of those, in the kernel's own order?
static bool ordered(const Accessors& before, const Access& access, unsigned syncs) {
    if (before.block < first_serial) return true; // nobody, or an earlier launch
    if (before.block != serial) {
        if (access.space == SHARED) return true; // another block's memory
        auto found = acquired.find(before.block);
        return found != acquired.end() && before.events < found->second;
    }
    if (before.epoch != barriers) return true;
    unsigned warp = current / 32;
    if (before.last != current && !(before.last / 32u == warp && before.last_syncs < syncs)) return false;
    return before.others_warp == NOBODY || (before.others_warp == warp && before.others_syncs < syncs);
}

static void note(Accessors& by, const Access& access, unsigned syncs) {
    if (by.block != serial || by.epoch != barriers) {
        by.block = serial;
        by.epoch = (uint32_t)barriers;
        by.others_warp = NOBODY;
    } else if (by.last != current) {
        uint16_t warp = by.last / 32;
        if (by.others_warp == NOBODY) {
            by.others_warp = warp;
            by.others_syncs = by.last_syncs;
        } else if (by.others_warp == warp)
            by.others_syncs = std::max(by.others_syncs, by.last_syncs);
        else
            by.others_warp = SEVERAL;
    }
    by.last = (uint16_t)current;
    by.last_syncs = (uint16_t)syncs;
    by.events = events;
    by.pc = access.pc;
}

[[noreturn]] static void report(const Access& access, const Accessors& before, Kind kind) {
    static const char* const BEFORE[] = {"read", "wrote", "changed atomically"};
    char who[96], what[128];
    const Vector &b = launch->block, &g = launch->grid;
    unsigned t = before.last;
    uint64_t n = numbers[before.block];
    snprintf(who, sizeof who, "thread (%u, %u, %u) of block (%u, %u, %u)", t % b.x, t / b.x % b.y, t / b.x / b.y, (unsigned)(n % g.x),
             (unsigned)(n / g.x % g.y), (unsigned)(n / g.x / g.y));
    if (access.space == SHARED)
        snprintf(what, sizeof what, "shared memory at byte %zu", access.offset);
    else
        snprintf(what, sizeof what, "byte %zu of a buffer of %zu bytes", access.offset, access.buffer->size);
    result->other = before.pc;
    int line = access.pc & LINE ? (int)(access.pc & ~LINE) : 0;
    const char* how = access.write ? "writes" : "reads";
    fail(line ? 0 : access.pc, line, "race: %s %s, which %s %s, with nothing that orders them", how, what, who, BEFORE[kind]);
}

void races_look(const Access& access) {
    if (access.atomic && access.space == GLOBAL) exchange(access.address);
    unsigned syncs = warp_syncs(current);
    Kind own = access.atomic ? ATOMICS : access.write ? WRITES : READS;
    Cell* cell = cells(access);
    for (unsigned k = 0; k < access.size; k++, cell++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (kind == own && own != WRITES) continue; // reads among themselves, atomics among themselves
            if (kind == ATOMICS && own == READS && access.atomic) continue;
            if (!ordered(cell->by[kind], access, syncs)) report(access, cell->by[kind], (Kind)kind);
        }
        note(cell->by[own], access, syncs);
        if (own == WRITES) cell->by[WRITES].others_warp = NOBODY; // all earlier ones are before it
    }
}
} // namespace emulator
