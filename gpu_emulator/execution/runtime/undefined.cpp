// What g++'s checks of undefined behaviour call: overruns of arrays, misaligned access, shifts, signed overflow, conversions out of
// range.
//
// NVRTC assumes that none of these happens and generates code accordingly, so each is an error here.
#include "runtime.h"

namespace emulator {
struct Type {
    uint16_t kind, info;
    char name[1]; // "'float4'"
};
struct Place {
    const char* file;
    uint32_t line, column;
};
struct Mismatch {
    Place place;
    const Type* type;
    unsigned char log_alignment, check;
};
struct OfType {
    Place place;
    const Type* type;
};

// Integers up to the word's size are passed as they are, wider ones by address.
static long long number(const Type* type, uintptr_t value) {
    unsigned bits = 1u << (type->info >> 1);
    if (bits > 64) return 0;
    bool is_signed = type->info & 1;
    return is_signed ? (long long)(value << (64 - bits)) >> (64 - bits) : (long long)value;
}

extern "C" {
void __ubsan_handle_type_mismatch_v1(Mismatch* data, uintptr_t address) {
    char text[256];
    size_t align = (size_t)1 << data->log_alignment;
    if (address % align)
        fail(PC, 0, "misaligned access: %#zx is no multiple of %zu, as %s asks", (size_t)address, align, data->type->name);
    fail(PC, 0, "illegal access to address %#zx as %s: %s", (size_t)address, data->type->name, space_of(address, text, sizeof text));
}
void __ubsan_handle_out_of_bounds(OfType* data, uintptr_t index) {
    const Type* index_type = *(&data->type + 1);
    fail(PC, 0, "index %lld is outside %s", number(index_type, index), data->type->name);
}
void __ubsan_handle_shift_out_of_bounds(OfType* data, uintptr_t value, uintptr_t by) {
    const Type* by_type = *(&data->type + 1);
    fail(PC, 0, "shift of %lld of type %s by %lld", number(data->type, value), data->type->name, number(by_type, by));
}
#define OVERFLOW(kind, sign)                                                                                                          \
    void __ubsan_handle_##kind##_overflow(OfType* data, uintptr_t a, uintptr_t b) {                                                   \
        fail(PC, 0, "signed overflow: %lld " sign " %lld in %s", number(data->type, a), number(data->type, b), data->type->name);     \
    }
OVERFLOW(add, "+")
OVERFLOW(sub, "-")
OVERFLOW(mul, "*")
OVERFLOW(divrem, "/")
void __ubsan_handle_negate_overflow(OfType* data, uintptr_t a) {
    fail(PC, 0, "signed overflow: -(%lld) in %s", number(data->type, a), data->type->name);
}
void __ubsan_handle_float_cast_overflow(void*, uintptr_t) {
    fail(PC, 0, "conversion of a floating-point number to an integer that cannot hold it");
}
}
} // namespace emulator
