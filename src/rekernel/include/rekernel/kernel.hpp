// What the compiler reads before every C++ text (-include): rekernel::Array, and how an entry point takes its arguments.
//
// Only names that begin with rekernel are used after the text: the user's macros are in force there.
#ifndef REKERNEL_KERNEL
#define REKERNEL_KERNEL 1
#if defined(__GNUC__)
#pragma GCC system_header
#endif
#include "abi.hpp"
#include "array.hpp"
#if defined(REKERNEL_DEBUG)
#include "checks.hpp"
#endif

REKERNEL_BOTH void *rekernel_p(const rk_slot *slot_) { return slot_->p; }
REKERNEL_BOTH long long rekernel_i(const rk_slot *slot_) { return slot_->i; }
REKERNEL_BOTH unsigned long long rekernel_u(const rk_slot *slot_) { return slot_->u; }
REKERNEL_BOTH float rekernel_f(const rk_slot *slot_) { return slot_->f; }
REKERNEL_BOTH double rekernel_d(const rk_slot *slot_) { return slot_->d; }
REKERNEL_BOTH const long long *rekernel_n(const rk_slot *slot_) { return &slot_->i; }
REKERNEL_BOTH void rekernel_to_i(rk_call *call_, long long value_) { call_->result->i = value_; }
REKERNEL_BOTH void rekernel_to_u(rk_call *call_, unsigned long long value_) { call_->result->u = value_; }
REKERNEL_BOTH void rekernel_to_f(rk_call *call_, float value_) { call_->result->f = value_; }
REKERNEL_BOTH void rekernel_to_d(rk_call *call_, double value_) { call_->result->d = value_; }
REKERNEL_BOTH const rk_slot *rekernel_slots_of(const rk_call *call_) { return call_->slots; }

// Called inside of `catch (...)`.
inline int rekernel_caught(rk_call *call_) {
    call_->describe(call_->error);
    return 1;
}

#if !defined(REKERNEL_DEBUG)
#define REKERNEL_GUARDED(call_, ...) __VA_ARGS__
#endif

// Entry points are hidden in a unit that is linked with a Python module, where two modules may share a global scope.
#if defined(REKERNEL_HIDDEN)
#define REKERNEL_VISIBLE __visibility__("hidden")
#else
#define REKERNEL_VISIBLE __visibility__("default")
#endif

// symbol_: of the entry point; returned_: the result's type; types_: those of the parameters, in parentheses; store_: a
// function that keeps the result, or nothing; given_: the arguments, in parentheses; the rest: the function's address.
#define REKERNEL_PLAIN_ENTRY(symbol_, returned_, types_, store_, given_, ...)                        \
    extern "C" __attribute__((REKERNEL_VISIBLE)) int symbol_(rk_call *rekernel_call) {               \
        returned_(*const rekernel_function) types_ = __VA_ARGS__;                                    \
        const rk_slot *const rekernel_slots = rekernel_slots_of(rekernel_call);                      \
        static_cast<void>(rekernel_slots);                                                           \
        try {                                                                                        \
            REKERNEL_GUARDED(rekernel_call, store_(rekernel_call, rekernel_function given_));        \
        } catch (...) {                                                                              \
            return rekernel_caught(rekernel_call);                                                   \
        }                                                                                            \
        return 0;                                                                                    \
    }
#define REKERNEL_NO_RESULT(call_, ...) __VA_ARGS__

#endif
