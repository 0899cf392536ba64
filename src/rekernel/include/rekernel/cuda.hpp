// What NVRTC reads before every CUDA text (--pre-include): rekernel::Array, and how a kernel's signature is written into
// the compiled module.
//
// Only names that begin with rekernel are used after the text: the user's macros are in force there.
#ifndef REKERNEL_CUDA
#define REKERNEL_CUDA 1
#include "abi.hpp"
#include "array.hpp"

// NVRTC's own assert ends the CUDA context, and with it every array of the process.
#undef assert
#if defined(REKERNEL_DEBUG)
#include "cudachecks.hpp"
#define assert(...) \
    ((__VA_ARGS__) ? static_cast<void>(0) : rekernel_checks::failed_assert(#__VA_ARGS__, __FILE__, __LINE__))
#else
#define assert(...) static_cast<void>(0)
#endif

namespace rekernel_entry {

constexpr bool said(const char *in_, const char *what_) {
    for (; *in_; ++in_) {
        int at_ = 0;
        while (what_[at_] && in_[at_] == what_[at_]) ++at_;
        if (!what_[at_]) return true;
    }
    return false;
}

constexpr bool begins(const char *name_, const char *spaced_, const char *close_) {
    return said(name_, spaced_) || said(name_, close_);  // versions of NVRTC write it the one way or the other
}

// 'c' for the complex numbers of CUDA's libraries, 'f' for __half, which has NumPy's layout; 0 for other classes.
template <class T_> constexpr int class_code() {
    const char *const name_ = __PRETTY_FUNCTION__;
    if (begins(name_, "T_ = __half]", "T_=__half]")) return 'f';
    if (!said(name_, "complex<float>]") && !said(name_, "complex<double>]")) return 0;
    return begins(name_, "T_ = thrust::", "T_=thrust::") || begins(name_, "T_ = cuda::", "T_=cuda::") ||
                   begins(name_, "T_ = std::", "T_=std::")
               ? 'c'
               : 0;
}

template <int> __global__ void rekernel_none() {}

}  // namespace rekernel_entry

#include "entry.hpp"

// The record of a kernel, and its address under a name of ours, for which NVRTC tells the name in the compiled module.
// symbol_: of the record; at_: of the address; number_: of the kernel in its text; the rest: its address.
#define REKERNEL_CUDA_KERNEL(symbol_, at_, number_, marker_, ...)                 \
    constexpr auto at_ = __VA_ARGS__;                                             \
    extern "C" __device__ const auto symbol_ = rekernel_entry::rekernel_describe( \
        static_cast<decltype(__VA_ARGS__)>(nullptr), marker_, number_);
// The same of a variable: what its record describes is a function that takes its address.
#define REKERNEL_CUDA_VARIABLE(symbol_, at_, number_, marker_, ...)               \
    constexpr auto at_ = __VA_ARGS__;                                             \
    extern "C" __device__ const auto symbol_ = rekernel_entry::rekernel_describe( \
        static_cast<void (*)(decltype(__VA_ARGS__))>(nullptr), marker_, number_);
// The address of nothing, for a kernel that the preprocessor has left out.
#define REKERNEL_CUDA_NONE(at_) constexpr auto at_ = &rekernel_entry::rekernel_none<0>;

#endif
