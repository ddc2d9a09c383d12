// Memory transactions of warps, by the instruction that asks for them.
//
// The k-th time that lanes of a warp come to an instruction is one request.  In device memory it costs the 32-byte sectors that it
// touches; in shared memory as many passes as the busiest of the 32 banks has different words, lanes with 8 or 16 bytes going by halves or
// quarters of a warp.
#include "accesses.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace emulator {
struct Counted { // emulator.module: _Request
    uint64_t pc;
    int flags, size; // 1: write, 2: shared
    uint64_t requests, lanes, transactions, ideal;
};

struct Request {
    uint32_t lanes = 0;
    uintptr_t address[32];
};
struct Site {
    std::vector<uint32_t> times = std::vector<uint32_t>(1024); // by thread
    std::vector<Request> requests[32];                         // by warp
};
using Key = std::tuple<uint64_t, int, int>;

static std::map<Key, Counted> counted;
static std::map<Key, Site> sites;

void trace_begin_launch() {
    counted.clear();
    sites.clear();
}

void trace_look(const Access& access) {
    int flags = (access.write ? 1 : 0) | (access.space == SHARED ? 2 : 0);
    Site& site = sites[{access.pc, flags, (int)access.size}];
    unsigned time = site.times[current]++;
    auto& requests = site.requests[current / 32];
    if (requests.size() <= time) requests.resize(time + 1);
    Request& request = requests[time];
    request.lanes |= 1u << current % 32;
    request.address[current % 32] = access.space == SHARED ? access.offset : access.address;
}

static unsigned distinct(uintptr_t* values, unsigned count) {
    std::sort(values, values + count);
    return (unsigned)(std::unique(values, values + count) - values);
}

static void count_global(const Request& request, unsigned size, Counted& sum) {
    std::vector<uintptr_t> sectors, addresses;
    for (unsigned lane = 0; lane < 32; lane++) {
        if (!(request.lanes >> lane & 1)) continue;
        uintptr_t at = request.address[lane];
        addresses.push_back(at);
        for (uintptr_t sector = at / 32; sector <= (at + size - 1) / 32; sector++) sectors.push_back(sector);
    }
    sum.transactions += distinct(sectors.data(), (unsigned)sectors.size());
    sum.ideal += (distinct(addresses.data(), (unsigned)addresses.size()) * size + 31) / 32;
}

static void count_shared(const Request& request, unsigned size, Counted& sum) {
    unsigned group = size <= 4 ? 32 : size <= 8 ? 16 : 8;
    for (unsigned first = 0; first < 32; first += group) {
        std::vector<uintptr_t> banks[32];
        bool any = false;
        for (unsigned lane = first; lane < first + group; lane++) {
            if (!(request.lanes >> lane & 1)) continue;
            any = true;
            uintptr_t at = request.address[lane];
            for (uintptr_t word = at / 4; word <= (at + size - 1) / 4; word++) banks[word % 32].push_back(word);
        }
        if (!any) continue;
        unsigned passes = 1;
        for (auto& bank : banks) passes = std::max(passes, distinct(bank.data(), (unsigned)bank.size()));
        sum.transactions += passes;
        sum.ideal++;
    }
}

void trace_end_block() {
    for (auto& [key, site] : sites) {
        auto [pc, flags, size] = key;
        Counted& sum = counted.try_emplace(key, Counted{pc, flags, size, 0, 0, 0, 0}).first->second;
        for (auto& requests : site.requests) {
            for (const Request& request : requests) {
                sum.requests++;
                sum.lanes += (unsigned)__builtin_popcount(request.lanes);
                (flags & 2 ? count_shared : count_global)(request, (unsigned)size, sum);
            }
        }
    }
    sites.clear();
}

extern "C" int emulator_trace(Counted* out, int room) {
    int k = 0;
    for (auto& [key, sum] : counted)
        if (k++ < room) out[k - 1] = sum;
    return k;
}
} // namespace emulator
