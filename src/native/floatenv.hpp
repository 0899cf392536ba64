// The floating-point environment of this thread, kept over foreign code.
//
// Invariant: after restore() rounding, flush-to-zero, masks and the sticky flags are what they were in the constructor.
// Written for speed: fegetenv() and fesetenv() take longer than the rest of a call.
#pragma once

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rekernel {

#if defined(__x86_64__)

class FloatEnvironment {
public:
    FloatEnvironment() : sse(_mm_getcsr()) { __asm__ volatile("fnstcw %0" : "=m"(x87)); }

    void restore() const {
        unsigned short now;
        __asm__ volatile("fnstcw %0" : "=m"(now));
        if (now != x87) __asm__ volatile("fldcw %0" : : "m"(x87));
        if (_mm_getcsr() != sse) _mm_setcsr(sse);
    }

private:
    unsigned sse;
    unsigned short x87;
};

#else

class FloatEnvironment {
public:
    FloatEnvironment() { std::fegetenv(&environment); }
    void restore() const { std::fesetenv(&environment); }

private:
    std::fenv_t environment;
};

#endif

}  // namespace rekernel
