// What every kernel sees without including anything, and how a module tells the scheduler of its kernels.
#pragma once
#include "collectives.h"
#include "half_bits.h"
#include "intrinsics.h"

extern "C" char* emulator_dynamic; // dynamic shared memory of the block that runs

namespace emulator {
struct Kernel {
    const char* name;
    const char* unit;                 // the name of its source
    void (*run)(const char* arguments); // one thread
    unsigned count;                   // parameters, their sizes and where they lie in the argument bytes
    const unsigned *sizes, *offsets;
    unsigned bytes;
    char *shared, *shared_end;
    int bounds; // threads per block at most; 0: not said
};

template <auto function, class> struct Caller;
template <auto function, class... T> struct Caller<function, void (*)(T...)> {
    static constexpr unsigned count = sizeof...(T);
    struct Table { unsigned sizes[count + 1] = {}, offsets[count + 1] = {}, bytes = 0; };
    static constexpr Table layout() {
        Table table;
        unsigned sizes[] = {(unsigned)sizeof(T)..., 0u}, aligns[] = {(unsigned)alignof(T)..., 1u}, at = 0;
        for (unsigned k = 0; k < count; k++) {
            at = (at + aligns[k] - 1) / aligns[k] * aligns[k];
            table.sizes[k] = sizes[k];
            table.offsets[k] = at;
            at += sizes[k];
        }
        table.bytes = at;
        return table;
    }
    static constexpr Table table = layout();
    template <unsigned... k> struct Numbers {
        // reads memory of the host, which instrumented code may not
        __attribute__((no_sanitize("thread"))) static void call(const char* arguments) {
            function(*(const T*)(arguments + table.offsets[k])...);
        }
    };
    static void run(const char* arguments) { Numbers<__integer_pack(count)...>::call(arguments); }
};
} // namespace emulator

#define EMULATOR_KERNEL(function, unit, section, bounds)                                                                              \
    { #function, unit, emulator::Caller<&function, decltype(&function)>::run, emulator::Caller<&function, decltype(&function)>::count,  \
      emulator::Caller<&function, decltype(&function)>::table.sizes, emulator::Caller<&function, decltype(&function)>::table.offsets,  \
      emulator::Caller<&function, decltype(&function)>::table.bytes, __start_##section, __stop_##section, (int)(bounds) }
// where the linker puts the ends of a kernel's shared memory; null if it has none
#define EMULATOR_SECTION(section)                                                                                                     \
    extern "C" char __start_##section[] __attribute__((weak, visibility("hidden")));                                                  \
    extern "C" char __stop_##section[] __attribute__((weak, visibility("hidden")));
