// Barriers, warp collectives, fences and atomics: what threads do together.
//
// In: the scheduler's entry points.  Promise: a collective knows the line of the kernel it stands on (a default argument is evaluated
// where the call is), so that threads that meet on different lines are found out.
#pragma once
#include "language.h"

extern "C" {
enum Vote { VOTE_NONE, VOTE_COUNT, VOTE_AND, VOTE_OR };
int emulator_barrier(int vote, int value, int line);
enum Collective { WARP_SYNC, WARP_SHUFFLE, WARP_BALLOT, WARP_ALL, WARP_ANY, WARP_MATCH, WARP_ADD, WARP_MIN, WARP_MAX, WARP_UMIN,
                  WARP_UMAX, WARP_AND, WARP_OR, WARP_XOR };
unsigned long long emulator_warp(int kind, unsigned mask, unsigned long long value, int source, int line);
unsigned emulator_active();
void emulator_fence(int scope);
void emulator_atomic(const void* address, int size, int line);
void emulator_yield();
}
#define LINE int line = __builtin_LINE()

inline void __syncthreads(LINE) { emulator_barrier(VOTE_NONE, 0, line); }
inline int __syncthreads_count(int predicate, LINE) { return emulator_barrier(VOTE_COUNT, predicate, line); }
inline int __syncthreads_and(int predicate, LINE) { return emulator_barrier(VOTE_AND, predicate, line); }
inline int __syncthreads_or(int predicate, LINE) { return emulator_barrier(VOTE_OR, predicate, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, LINE) { emulator_warp(WARP_SYNC, mask, 0, 0, line); }
inline unsigned __activemask() { return emulator_active(); }

inline void __threadfence_block() { emulator_fence(0); }
inline void __threadfence() { emulator_fence(1); }
inline void __threadfence_system() { emulator_fence(1); }
inline void __nanosleep(unsigned) { emulator_yield(); }

extern "C" int emulator_lane();

// Which lane a shuffle reads; out of range of its group of `width` lanes: the lane's own value.
inline int emulator_source(char kind, int lane, int operand, int width) {
    int first = lane & ~(width - 1), last = first + width - 1;
    if (kind == 'i') return first + (operand & (width - 1));
    if (kind == 'u') return lane - operand < first ? lane : lane - operand;
    int source = kind == 'd' ? lane + operand : lane ^ operand;
    return source > last ? lane : source;
}
template <class T> inline T emulator_shuffle(char kind, unsigned mask, T value, int operand, int width, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = emulator_warp(WARP_SHUFFLE, mask, bits, emulator_source(kind, emulator_lane(), operand, width), line);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}
#define SHUFFLES(T)                                                                                                                   \
    inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32, LINE) {                                                        \
        return emulator_shuffle('i', mask, v, lane, width, line);                                                                     \
    }                                                                                                                                 \
    inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, LINE) {                                                  \
        return emulator_shuffle('u', mask, v, (int)by, width, line);                                                                  \
    }                                                                                                                                 \
    inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, LINE) {                                                \
        return emulator_shuffle('d', mask, v, (int)by, width, line);                                                                  \
    }                                                                                                                                 \
    inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, LINE) {                                                    \
        return emulator_shuffle('x', mask, v, bits, width, line);                                                                     \
    }
SHUFFLES(int)
SHUFFLES(unsigned)
SHUFFLES(long)
SHUFFLES(unsigned long)
SHUFFLES(long long)
SHUFFLES(unsigned long long)
SHUFFLES(float)
SHUFFLES(double)

inline unsigned __ballot_sync(unsigned mask, int p, LINE) { return (unsigned)emulator_warp(WARP_BALLOT, mask, p != 0, 0, line); }
inline int __all_sync(unsigned mask, int p, LINE) { return (int)emulator_warp(WARP_ALL, mask, p != 0, 0, line); }
inline int __any_sync(unsigned mask, int p, LINE) { return (int)emulator_warp(WARP_ANY, mask, p != 0, 0, line); }
#define MATCHES(T, U)                                                                                                                 \
    inline unsigned __match_any_sync(unsigned mask, T value, LINE) {                                                                  \
        U bits; __builtin_memcpy(&bits, &value, sizeof bits);                                                                         \
        return (unsigned)emulator_warp(WARP_MATCH, mask, bits, 0, line);                                                              \
    }
MATCHES(int, unsigned)
MATCHES(unsigned, unsigned)
MATCHES(float, unsigned)
MATCHES(long long, unsigned long long)
MATCHES(unsigned long long, unsigned long long)
MATCHES(double, unsigned long long)
inline int __reduce_add_sync(unsigned mask, int v, LINE) { return (int)emulator_warp(WARP_ADD, mask, (unsigned)v, 0, line); }
inline unsigned __reduce_add_sync(unsigned mask, unsigned v, LINE) { return (unsigned)emulator_warp(WARP_ADD, mask, v, 0, line); }
inline int __reduce_min_sync(unsigned mask, int v, LINE) { return (int)emulator_warp(WARP_MIN, mask, (unsigned)v, 0, line); }
inline int __reduce_max_sync(unsigned mask, int v, LINE) { return (int)emulator_warp(WARP_MAX, mask, (unsigned)v, 0, line); }
inline unsigned __reduce_min_sync(unsigned mask, unsigned v, LINE) { return (unsigned)emulator_warp(WARP_UMIN, mask, v, 0, line); }
inline unsigned __reduce_max_sync(unsigned mask, unsigned v, LINE) { return (unsigned)emulator_warp(WARP_UMAX, mask, v, 0, line); }
inline unsigned __reduce_and_sync(unsigned mask, unsigned v, LINE) { return (unsigned)emulator_warp(WARP_AND, mask, v, 0, line); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned v, LINE) { return (unsigned)emulator_warp(WARP_OR, mask, v, 0, line); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned v, LINE) { return (unsigned)emulator_warp(WARP_XOR, mask, v, 0, line); }

// Threads run one at a time, so an atomic is a read and a write; `emulator_atomic` checks alignment and tells the race detector.
#define ATOMIC(name, T, expression)                                                                                                   \
    __attribute__((no_sanitize("thread", "signed-integer-overflow"))) inline T name(T* address, T value, LINE) {                      \
        emulator_atomic(address, sizeof(T), line);                                                                                    \
        T old = *address;                                                                                                             \
        *address = (expression);                                                                                                      \
        return old;                                                                                                                   \
    }                                                                                                                                 \
    inline T name##_block(T* address, T value, LINE) { return name(address, value, line); }                                           \
    inline T name##_system(T* address, T value, LINE) { return name(address, value, line); }
ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
ATOMIC(atomicAdd, unsigned, old + value)
ATOMIC(atomicAdd, unsigned long long, old + value)
ATOMIC(atomicAdd, float, old + value)
ATOMIC(atomicAdd, double, old + value)
ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
ATOMIC(atomicSub, unsigned, old - value)
ATOMIC(atomicExch, int, value)
ATOMIC(atomicExch, unsigned, value)
ATOMIC(atomicExch, unsigned long long, value)
ATOMIC(atomicExch, float, value)
#define ATOMIC_ORDERED(T)                                                                                                             \
    ATOMIC(atomicMin, T, value < old ? value : old)                                                                                   \
    ATOMIC(atomicMax, T, value > old ? value : old)                                                                                   \
    ATOMIC(atomicAnd, T, old& value)                                                                                                  \
    ATOMIC(atomicOr, T, old | value)                                                                                                  \
    ATOMIC(atomicXor, T, old ^ value)
ATOMIC_ORDERED(int)
ATOMIC_ORDERED(unsigned)
ATOMIC_ORDERED(long long)
ATOMIC_ORDERED(unsigned long long)
ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
ATOMIC(atomicDec, unsigned, old == 0u || old > value ? value : old - 1u)
#define ATOMIC_SWAP(T)                                                                                                                \
    __attribute__((no_sanitize("thread"))) inline T atomicCAS(T* address, T compare, T value, LINE) {                                 \
        emulator_atomic(address, sizeof(T), line);                                                                                    \
        T old = *address;                                                                                                             \
        if (old == compare) *address = value;                                                                                         \
        return old;                                                                                                                   \
    }
ATOMIC_SWAP(int)
ATOMIC_SWAP(unsigned)
ATOMIC_SWAP(unsigned long long)
ATOMIC_SWAP(unsigned short)
#undef ATOMIC
#undef ATOMIC_ORDERED
#undef ATOMIC_SWAP
#undef SHUFFLES
#undef MATCHES
