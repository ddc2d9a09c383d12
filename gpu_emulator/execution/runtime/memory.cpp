// Device memory: every buffer between pages that nobody may touch.
//
// A buffer ends where a page ends (up to its alignment), so an element too far faults; or begins where one begins.  What is left of its
// own pages holds a pattern that is checked after each launch.  Freed buffers keep their addresses for a while, without memory: using one
// faults.
#include "runtime.h"

#include <algorithm>
#include <deque>
#include <map>
#include <sys/mman.h>
#include <vector>

namespace emulator {
constexpr size_t PAGE = 4096, GUARD = 16 * PAGE, WATCHED = 512; // bytes of pattern checked on each side
constexpr unsigned char FRESH = 0xff, PATTERN = 0xfa;           // what memory holds: NaN, -1; what lies beside it: large numbers
constexpr size_t KEPT = 4096;                                   // freed buffers that keep their addresses
constexpr unsigned LARGEST_SHARED = 227 << 10;

static std::map<uintptr_t, Buffer> buffers; // by the start of their mapping
static std::deque<uintptr_t> freed;
static char* dynamic_region; // ends at a guard page

static Buffer* last; // found

Buffer* find_buffer(uintptr_t address) {
    if (last && address - last->mapping < last->mapped) return last;
    auto found = buffers.upper_bound(address);
    if (found == buffers.begin()) return nullptr;
    Buffer& buffer = std::prev(found)->second;
    if (address - buffer.mapping >= buffer.mapped) return nullptr;
    return last = &buffer;
}

const char* space_of(uintptr_t address, char* text, size_t size, unsigned bytes) {
    Buffer* buffer = find_buffer(address);
    uintptr_t stop = buffer ? buffer->address + buffer->size : 0;
    const char* what = buffer && buffer->live ? "a buffer" : "a freed buffer";
    if (!buffer) {
        uintptr_t end = (uintptr_t)dynamic_region + LARGEST_SHARED;
        if (dynamic_region && address >= end && address < end + GUARD)
            snprintf(text, size, "%zu bytes past the end of dynamic shared memory of %u bytes", (size_t)(address - end), launch->shared);
        else
            snprintf(text, size, address < PAGE ? "a null pointer" : "no memory of the device");
    } else if (address >= stop)
        snprintf(text, size, "%zu bytes past the end of %s of %zu bytes", (size_t)(address - stop), what, buffer->size);
    else if (address < buffer->address)
        snprintf(text, size, "%zu bytes before the start of %s of %zu bytes", (size_t)(buffer->address - address), what, buffer->size);
    else if (buffer->live && address + bytes > stop)
        snprintf(text, size, "%zu bytes of it past the end of a buffer of %zu bytes", (size_t)(address + bytes - stop), buffer->size);
    else
        snprintf(text, size, "at byte %zu of %s of %zu bytes", (size_t)(address - buffer->address), what, buffer->size);
    return text;
}

// The first byte beside the buffer, on its own pages, that no longer holds the pattern; 0 if all do.  It is there again afterwards.
static uintptr_t overwritten(const Buffer& buffer) {
    uintptr_t end = buffer.address + buffer.size, found = 0;
    uintptr_t ranges[2][2] = {{std::max(buffer.mapping + GUARD, buffer.address - WATCHED), buffer.address},
                              {end, std::min(buffer.mapping + buffer.mapped - GUARD, end + WATCHED)}};
    static const std::vector<unsigned char> pattern(WATCHED, PATTERN);
    for (auto& [start, stop] : ranges) {
        if (!memcmp((void*)start, pattern.data(), stop - start)) continue;
        uintptr_t at = start;
        while (*(unsigned char*)at == PATTERN) at++;
        if (!found) found = at;
        memset((void*)start, PATTERN, stop - start);
    }
    return found;
}

void check_canaries() {
    char text[256];
    for (auto& [_, buffer] : buffers) {
        if (!buffer.live) continue;
        uintptr_t at = overwritten(buffer);
        if (!at) continue;
        fail(0, 0, "found after the launch: somebody wrote %s", space_of(at, text, sizeof text));
    }
}

// All but `size` bytes of the region are out of reach at its end: the block's array begins at a multiple of 16.
char* dynamic_shared(unsigned size) {
    if (!dynamic_region) {
        size_t rounded = (LARGEST_SHARED + PAGE - 1) / PAGE * PAGE;
        char* got = (char*)mmap(nullptr, rounded + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        mprotect(got, rounded, PROT_READ | PROT_WRITE);
        dynamic_region = got + rounded - LARGEST_SHARED;
    }
    return dynamic_region + LARGEST_SHARED - (size + 15) / 16 * 16;
}

bool in_dynamic(uintptr_t address, unsigned size, size_t* offset) {
    uintptr_t start = (uintptr_t)dynamic_shared(launch->shared);
    *offset = address - start;
    return launch->shared && address >= start && address + size <= start + (launch->shared + 15) / 16 * 16;
}

extern "C" {
// guard: 0 the end is guarded to the alignment, 1 the start.  fill: 0 leaves the pages untouched (zero, and not there until used).
void* emulator_allocate(size_t size, size_t align, int guard, int fill) {
    size_t held = std::max<size_t>((size + align - 1) / align * align, align), pages = (held + PAGE - 1) / PAGE * PAGE;
    size_t mapped = pages + 2 * GUARD;
    char* got = (char*)mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == (char*)MAP_FAILED) return nullptr;
    if (mprotect(got + GUARD, pages, PROT_READ | PROT_WRITE)) {
        munmap(got, mapped);
        return nullptr;
    }
    char* address = got + GUARD + (guard ? 0 : pages - held);
    memset(got + GUARD, PATTERN, (size_t)(address - got) - GUARD);
    if (fill) memset(address, FRESH, size);
    memset(address + size, PATTERN, (size_t)(got + GUARD + pages - (address + size)));
    buffers[(uintptr_t)got] = {(uintptr_t)address, size, (uintptr_t)got, mapped, nullptr, true};
    return address;
}

size_t emulator_shadow_bytes(size_t size);

// 0: done; 1: not the start of a live buffer; 2: somebody wrote beside it
int emulator_free(void* address) {
    Buffer* buffer = find_buffer((uintptr_t)address);
    if (!buffer || !buffer->live || buffer->address != (uintptr_t)address) return 1;
    int answer = overwritten(*buffer) ? 2 : 0;
    buffer->live = false;
    if (buffer->shadow) munmap(buffer->shadow, emulator_shadow_bytes(buffer->size));
    buffer->shadow = nullptr;
    mmap((void*)buffer->mapping, buffer->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    freed.push_back(buffer->mapping);
    if (freed.size() > KEPT) {
        auto oldest = buffers.find(freed.front());
        munmap((void*)oldest->second.mapping, oldest->second.mapped);
        last = nullptr;
        buffers.erase(oldest);
        freed.pop_front();
    }
    return answer;
}

// The size of the live buffer that holds these bytes, counted from the address to its end; -1 where there is none.
int64_t emulator_extent(void* address) {
    Buffer* buffer = find_buffer((uintptr_t)address);
    uintptr_t at = (uintptr_t)address;
    if (!buffer || !buffer->live || at < buffer->address || at > buffer->address + buffer->size) return -1;
    return (int64_t)(buffer->address + buffer->size - at);
}
}
} // namespace emulator
