// The CUDA execution model: blocks one after the other, the threads of a block in turns.
//
// In: a kernel of a module and how to launch it.  Out: its effects on memory, or the first violation.  Promise: a thread runs until it has
// to wait or ends; who is next is the launch's order alone, so a launch runs the same way every time.
#include "runtime.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

extern "C" {
emulator::Vector threadIdx, blockIdx, blockDim, gridDim; // what kernels see
char* emulator_dynamic;
}

namespace emulator {
const Kernel* kernel;
const Launch* launch;
Result* result;
unsigned current, threads;
uint64_t current_block, barriers;

enum State : uint8_t { NEW, READY, AT_BARRIER, IN_WARP, DONE };
enum Vote { NONE, COUNT, AND, OR };
enum Collective { SYNC, SHUFFLE, BALLOT, ALL, ANY, MATCH, ADD, MIN, MAX, UMIN, UMAX, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR };
static const char* const NAMES[] = {"__syncwarp", "__shfl_sync", "__ballot_sync", "__all_sync", "__any_sync", "__match_any_sync",
                                    "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync",
                                    "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};

struct Thread {
    Worker* worker; // while it waits
    State state;
    int line, kind, source; // of what it waits for
    unsigned mask;
    uint64_t value;
};
struct Warp {
    unsigned arrived; // lanes that wait in a collective
    unsigned gone;    // lanes that ended or never were
    unsigned syncs;   // barriers of all its lanes
};

static std::vector<Thread> all;
static Warp warps[32];
static std::vector<unsigned> order;
static std::deque<unsigned> queue; // who can run, the next one first
static unsigned waiting, ended;
static Worker* active; // where the current thread runs; nullptr: the launch
static const char* arguments;
static uint64_t random_state;

static uint64_t random_bits() { // splitmix64
    uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

unsigned warp_syncs(unsigned thread) { return warps[thread / 32].syncs; }

static void shuffle_order() {
    if (launch->order != 2) return;
    for (unsigned k = threads; k > 1; k--) std::swap(order[k - 1], order[random_bits() % k]);
}

// "thread (x, y, z)" as the kernel numbers it
struct Name {
    char text[48];
    explicit Name(unsigned t) {
        const Vector& b = launch->block;
        snprintf(text, sizeof text, "thread (%u, %u, %u)", t % b.x, t / b.x % b.y, t / b.x / b.y);
    }
};

[[noreturn]] static void deadlock() {
    for (unsigned t = 0; t < threads; t++) {
        Thread& thread = all[t];
        if (thread.state != IN_WARP) continue;
        Warp& warp = warps[t / 32];
        unsigned missing = thread.mask & ~warp.arrived & ~warp.gone;
        current = t;
        if (!missing) continue;
        unsigned other = t / 32 * 32 + (unsigned)__builtin_ctz(missing);
        fail(0, thread.line, "deadlock: %s waits in %s for lane %d, which waits on line %d", Name(t).text, NAMES[thread.kind],
             __builtin_ctz(missing), all[other].line);
    }
    fail(0, 0, "deadlock");
}

static void enter(unsigned t) {
    const Vector& b = launch->block;
    current = t;
    threadIdx = {t % b.x, t / b.x % b.y, t / b.x / b.y};
}

// Runs somebody else; comes back when the current thread is next, or, on a worker without a thread, when there is a new one to run there.
static void go_on(bool finished) {
    Worker* here = active;
    if (queue.empty()) {
        if (ended < threads) deadlock();
        give_back(here);
        active = nullptr;
        switch_to(here, nullptr);
        return; // the next block began
    }
    unsigned next = queue.front();
    queue.pop_front();
    Thread& thread = all[next];
    enter(next);
    bool fresh = thread.state == NEW;
    thread.state = READY;
    if (fresh && finished) return; // a plain loop
    if (fresh) {
        active = new_worker();
    } else {
        active = thread.worker;
        if (finished) give_back(here);
    }
    switch_to(here, active);
}

static void wait() {
    all[current].worker = active;
    go_on(false);
}

// Everybody arrived: all threads of the block run again, in order.
static void release_barrier() {
    waiting = 0;
    barriers++;
    shuffle_order();
    for (unsigned t : order) all[t].state = READY;
    queue.assign(order.begin(), order.end());
}

static void release_warp(unsigned first, unsigned lanes) {
    unsigned members[32], count = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        if (lanes >> lane & 1) members[count++] = first + lane;
    if (launch->order == 1) std::reverse(members, members + count);
    if (launch->order == 2)
        for (unsigned k = count; k > 1; k--) std::swap(members[k - 1], members[random_bits() % k]);
    // at once, before other warps: these should not go at one pace; in random order perhaps
    auto at = launch->order == 2 && random_bits() % 2 ? queue.end() : queue.begin();
    queue.insert(at, members, members + count);
    for (unsigned k = 0; k < count; k++) all[members[k]].state = READY;
    warps[first / 32].arrived &= ~lanes;
}

static uint64_t combine(int kind, unsigned first, unsigned lanes) {
    uint64_t got = kind == ALL || kind == LOGICAL_AND ? 0xffffffffu : 0;
    bool any = false;
    for (unsigned lane = 0; lane < 32; lane++) {
        if (!(lanes >> lane & 1)) continue;
        uint64_t value = all[first + lane].value;
        switch (kind) {
        case BALLOT: got |= value << lane; break;
        case ALL: got = got && value; break;
        case ANY: got = got || value; break;
        case ADD: got = (uint32_t)(got + value); break;
        case MIN: got = !any || (int32_t)value < (int32_t)got ? value : got; break;
        case MAX: got = !any || (int32_t)value > (int32_t)got ? value : got; break;
        case UMIN: got = !any || value < got ? value : got; break;
        case UMAX: got = !any || value > got ? value : got; break;
        case LOGICAL_AND: got &= value; break;
        case LOGICAL_OR: got |= value; break;
        case LOGICAL_XOR: got ^= value; break;
        default: break;
        }
        any = true;
    }
    return got;
}

// All lanes of the mask that are left have come.
static void complete(unsigned first, unsigned lanes) {
    Thread& any = all[first + (unsigned)__builtin_ctz(lanes)];
    uint64_t values[32], common = 0;
    if (any.kind == SHUFFLE) {
        for (unsigned lane = 0; lane < 32; lane++) {
            if (!(lanes >> lane & 1)) continue;
            Thread& thread = all[first + lane];
            if (!(lanes >> thread.source & 1)) {
                current = first + lane;
                fail(0, thread.line, "__shfl_sync reads lane %d, which is not there", thread.source);
            }
            values[lane] = all[first + (unsigned)thread.source].value;
        }
    } else if (any.kind == MATCH) {
        for (unsigned lane = 0; lane < 32; lane++) {
            if (!(lanes >> lane & 1)) continue;
            values[lane] = 0;
            for (unsigned other = 0; other < 32; other++)
                if ((lanes >> other & 1) && all[first + other].value == all[first + lane].value) values[lane] |= 1u << other;
        }
    } else {
        common = combine(any.kind, first, lanes);
        std::fill(values, values + 32, common);
    }
    Warp& warp = warps[first / 32];
    if (any.kind == SYNC && !(~lanes & ~warp.gone)) warp.syncs++;
    for (unsigned lane = 0; lane < 32; lane++)
        if (lanes >> lane & 1) all[first + lane].value = values[lane];
    release_warp(first, lanes);
}

// A lane came or went: is somebody's collective complete?
static void look_at_warp(unsigned first) {
    Warp& warp = warps[first / 32];
    for (unsigned lanes = warp.arrived; lanes;) {
        unsigned mask = all[first + (unsigned)__builtin_ctz(lanes)].mask;
        if (!(mask & ~warp.arrived & ~warp.gone)) complete(first, mask & warp.arrived);
        lanes &= ~mask;
    }
}

static void finish() {
    Thread& thread = all[current];
    thread.state = DONE;
    ended++;
    if (waiting) {
        unsigned t = 0;
        while (all[t].state != AT_BARRIER) t++;
        fail(0, all[t].line, "%s returned before the __syncthreads at which %s waits", Name(current).text, Name(t).text);
    }
    unsigned first = current / 32 * 32;
    warps[first / 32].gone |= 1u << current % 32;
    if (warps[first / 32].arrived) look_at_warp(first);
}

static void work() {
    for (;;) {
        kernel->run(arguments);
        finish();
        go_on(true);
    }
}

extern "C" {
int emulator_barrier(int vote, int value, int line) {
    Thread& thread = all[current];
    thread.state = AT_BARRIER;
    thread.line = line;
    thread.kind = vote;
    thread.value = (unsigned)value;
    if (ended) fail(0, line, "__syncthreads, after %u threads of the block returned", ended);
    if (++waiting == threads) {
        unsigned found = 0;
        for (unsigned t = 0; t < threads; t++) {
            if (all[t].line != line || all[t].kind != vote) {
                fail(0, line, "divergent barrier: %s is at the __syncthreads on line %d, %s at that on line %d", Name(current).text, line,
                     Name(t).text, all[t].line);
            }
            found += all[t].value != 0;
        }
        value = vote == COUNT ? (int)found : vote == AND ? found == threads : found > 0;
        for (unsigned t = 0; t < threads; t++) all[t].value = (unsigned)value;
        release_barrier();
    }
    wait();
    return (int)thread.value;
}

unsigned long long emulator_warp(int kind, unsigned mask, unsigned long long value, int source, int line) {
    unsigned lane = current % 32, first = current - lane;
    Thread& thread = all[current];
    Warp& warp = warps[first / 32];
    if (!(mask >> lane & 1)) fail(0, line, "%s: the mask %#x lacks the lane %u that calls it", NAMES[kind], mask, lane);
    for (unsigned other = 0; other < 32; other++) {
        Thread& peer = all[first + other];
        if (!(warp.arrived >> other & 1) || !((mask >> other & 1) || (peer.mask >> lane & 1))) continue;
        if (peer.kind != kind || peer.line != line || peer.mask != mask) {
            fail(0, line, "divergent collective: lane %u is in %s on line %d with mask %#x, lane %u in %s on line %d with mask %#x", lane,
                 NAMES[kind], line, mask, other, NAMES[peer.kind], peer.line, peer.mask);
        }
    }
    thread.state = IN_WARP;
    thread.line = line;
    thread.kind = kind;
    thread.source = source;
    thread.mask = mask;
    thread.value = value;
    warp.arrived |= 1u << lane;
    if (!(mask & ~warp.arrived & ~warp.gone)) complete(first, mask & warp.arrived);
    wait();
    return thread.value;
}

int emulator_lane() { return (int)(current % 32); }

// Lanes that are neither at a barrier nor gone: with threads in turns, one alone would be as right.
unsigned emulator_active() {
    unsigned first = current / 32 * 32, mask = 0;
    for (unsigned lane = 0; lane < 32 && first + lane < threads; lane++) {
        State state = all[first + lane].state;
        if (first + lane == current || state == NEW || state == READY) mask |= 1u << lane;
    }
    return mask;
}

void emulator_yield() {
    all[current].state = READY;
    queue.push_back(current);
    wait();
}

void emulator_assert(const char* condition, int line) { fail(0, line, "assertion failed: %s", condition); }
void emulator_trap(int line) { fail(0, line, "__trap"); }
}

static void run_block() {
    blockIdx = {(unsigned)(current_block % gridDim.x), (unsigned)(current_block / gridDim.x % gridDim.y),
                (unsigned)(current_block / gridDim.x / gridDim.y)};
    if (kernel->shared) memset(kernel->shared, 0xff, (size_t)(kernel->shared_end - kernel->shared));
    if (launch->shared) memset(emulator_dynamic, 0xff, (launch->shared + 15) / 16 * 16);
    for (Thread& thread : all) thread.state = NEW;
    for (unsigned w = 0; w < 32; w++) {
        unsigned there = threads > 32 * w ? std::min(threads - 32 * w, 32u) : 0;
        warps[w] = {0, there == 32 ? 0 : ~0u << there, 0};
    }
    waiting = ended = 0;
    barriers = 0;
    shuffle_order();
    queue.assign(order.begin() + 1, order.end());
    if (launch->races || launch->trace) begin_block_accesses();
    enter(order[0]);
    all[order[0]].state = READY;
    active = new_worker();
    switch_to(nullptr, active);
    if (launch->races || launch->trace) end_block_accesses();
}

static void run_launch() {
    prepare_workers(work);
    all.assign((threads + 31) / 32 * 32, Thread{});
    order.resize(threads);
    for (unsigned t = 0; t < threads; t++) order[t] = launch->order == 1 ? threads - 1 - t : t;
    emulator_dynamic = launch->shared ? dynamic_shared(launch->shared) : nullptr;
    if (launch->races || launch->trace) begin_launch_accesses();
    // a random order of blocks: a step without common divisor visits each once
    uint64_t count = launch->blocks, step = 1, start = 0;
    if (launch->order == 2 && count > 1) {
        auto divisor = [](uint64_t a, uint64_t b) { while (b) std::swap(a %= b, b); return a; };
        start = random_bits() % count;
        do step = 1 + random_bits() % count; while (divisor(step, count) != 1);
    }
    for (uint64_t k = 0; k < count; k++) {
        uint64_t at = launch->order == 1 ? count - 1 - k : (uint64_t)(((unsigned __int128)k * step + start) % count);
        current_block = launch->first + at;
        run_block();
    }
    check_canaries();
}

extern "C" int emulator_launch(const Kernel* what, const Launch* how, const char* bytes, Result* answer) {
    kernel = what;
    launch = how;
    arguments = bytes;
    result = answer;
    result->message[0] = 0;
    result->pc = result->other = 0;
    result->line = 0;
    gridDim = how->grid;
    blockDim = how->block;
    threads = how->block.x * how->block.y * how->block.z;
    random_state = how->seed;
    watch_faults(run_launch);
    return result->message[0] != 0;
}
} // namespace emulator
