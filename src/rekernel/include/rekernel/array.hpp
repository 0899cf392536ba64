// What every C++ kernel has without an include: the integer types of <cstdint>, and rekernel::Array.
//
//     void scale(rekernel::Array<double, 2> y, rekernel::Array<const double, 2> x, double k) {
//         for (int64_t i = 0; i < x.shape(0); ++i)
//             for (int64_t j = 0; j < x.shape(1); ++j) y(i, j) = k * x(i, j);
//     }
//
// This file includes nothing, so that it costs nothing to compile. Its own names end in an underscore: the user may
// have given -DT=float on the command line.
#ifndef REKERNEL_ARRAY
#define REKERNEL_ARRAY 1
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#if defined(__CUDACC__)
#define REKERNEL_BOTH __host__ __device__ __forceinline__
#else
#define REKERNEL_BOTH inline __attribute__((always_inline))
#endif

#if !defined(__CUDACC_RTC__)
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __SIZE_TYPE__ size_t;
#else  // NVRTC has size_t and ptrdiff_t; these are those of <cuda/std/cstdint>
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
#endif

namespace rekernel {

namespace detail {

#if defined(REKERNEL_DEBUG)
template <bool> struct when {};
template <> struct when<true> { using type = int; };

// An index that knows the line on which it was used. It is made of all that long long can be made of: numbers by value,
// for a reference would ask for the definition of a constant; others by reference, for a std::atomic cannot be copied.
struct index {
    long long value;
    const char *file;
    int line;
#if defined(__CUDACC_RTC__)  // with a second template parameter, NVRTC 13.0 tells the line here
    template <class I_>
    REKERNEL_BOTH constexpr index(I_ value_, const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE())
        : value(value_), file(file_), line(line_) {}
#else
    template <class I_, typename when<!__is_class(I_)>::type = 0>
    REKERNEL_BOTH constexpr index(I_ value_, const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE())
        : value(value_), file(file_), line(line_) {}
    template <class I_, typename when<__is_class(I_)>::type = 0>
    REKERNEL_BOTH constexpr index(const I_ &value_, const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE())
        : value(value_), file(file_), line(line_) {}
#endif
};

#if defined(__CUDACC_RTC__)  // it never returns: the thread ends
__device__ __noinline__ void out_of_range(const index &index_, int axis_, int rank_, const long long *shape_);
template <class T_> __device__ T_ &elsewhere() {
    T_ *place_;
    asm("mov.u64 %0, 0;" : "=l"(place_));
    return *place_;
}
#else
// It only returns on a thread that the kernel has started.
__attribute__((__noinline__, __cold__)) void out_of_range(const index &index_, int axis_, int rank_,
                                                          const long long *shape_);

// What is read and written there instead.
template <class T_> __attribute__((__noinline__, __cold__)) T_ &elsewhere() {
    alignas(T_) static thread_local unsigned char bytes_[sizeof(T_)];
    return *reinterpret_cast<T_ *>(bytes_);
}
#endif
#else
using index = long long;
#endif

template <int> struct one_index { using type = index; };
// What x[i] takes: nothing can be made of it where there is not just one axis, and the error is at the user's line.
template <int> struct bracket { class type; };
template <> struct bracket<1> { using type = index; };
template <int... axes_> struct axes {};
template <int n_, int... axes_> struct count : count<n_ - 1, n_ - 1, axes_...> {};
template <int... axes_> struct count<0, axes_...> { using type = axes<axes_...>; };

// The part of an array that takes exactly as many indices as it has axes.
template <class T_, class Axes_> struct access;
template <class T_, int... axes_> struct access<T_, axes<axes_...>> {
    // x(i, j): one index for each axis, in elements, from 0.
    REKERNEL_BOTH T_ &operator()(typename one_index<axes_>::type... index_) const {
#if defined(REKERNEL_DEBUG)
        const index given_[] = {index_..., index(0)};
        for (int axis_ = 0; axis_ < static_cast<int>(sizeof...(axes_)); ++axis_)
            if (given_[axis_].value < 0 || given_[axis_].value >= shape_[axis_]) {
                out_of_range(given_[axis_], axis_, static_cast<int>(sizeof...(axes_)), shape_);
                return elsewhere<T_>();
            }
        return data_[(0 + ... + (index_.value * stride_[axes_]))];
#else
        return data_[(0 + ... + (index_ * stride_[axes_]))];
#endif
    }

    access() = default;
    // Every step_-th number is taken: without a loop, which would cost the compiler a millisecond each.
    REKERNEL_BOTH access(T_ *data, const long long *shape, const long long *stride, int step_)
        : data_(data), shape_{shape[axes_ * step_]...}, stride_{stride[axes_ * step_]...} {}

    T_ *data_;
    long long shape_[sizeof...(axes_) ? sizeof...(axes_) : 1];
    long long stride_[sizeof...(axes_) ? sizeof...(axes_) : 1];
};

template <class T_> struct plain { using type = T_; };
template <class T_> struct plain<const T_> { using type = T_; };

}  // namespace detail

// An array of rank N_ with any strides, as NumPy's: a view, passed by value. T_ is const where it is only read. With
// restrict_, the text promises that no other argument overlaps it, and every call is checked for that.
template <class T_, int N_, bool restrict_ = false>
class Array : private detail::access<T_, typename detail::count<(N_ < 0 ? 0 : N_)>::type> {
    static_assert(N_ >= 0, "rekernel::Array<T, N>: N is the number of axes");
    using base = detail::access<T_, typename detail::count<(N_ < 0 ? 0 : N_)>::type>;

public:
    using value_type = T_;
    static constexpr int rank = N_;
    using base::operator();

    Array() = default;

    // shape and stride: N numbers each, stride in elements.
    REKERNEL_BOTH Array(T_ *data, const long long *shape, const long long *stride, int step_ = 1)
        : base(data, shape, stride, step_) {}

    // An array may be passed on to where it is only read, and to where nothing is promised.
    template <bool other_>
    REKERNEL_BOTH Array(const Array<typename detail::plain<T_>::type, N_, other_> &array)
        : Array(array.data_, array.shape_, array.stride_) {}

    // x[i] of an array of one axis.
    REKERNEL_BOTH T_ &operator[](typename detail::bracket<N_>::type index_) const { return (*this)(index_); }

    // The extent of an axis.
    REKERNEL_BOTH int64_t shape(int axis_) const { return base::shape_[axis_]; }
    // The distance of neighbours along an axis, in elements.
    REKERNEL_BOTH int64_t stride(int axis_) const { return base::stride_[axis_]; }
    // The number of elements.
    REKERNEL_BOTH int64_t size() const {
        long long product_ = 1;
        for (int axis_ = 0; axis_ < N_; ++axis_) product_ *= base::shape_[axis_];
        return product_;
    }
    // The element at index 0, 0, ...
    REKERNEL_BOTH T_ *data() const { return base::data_; }

private:
    template <class, int, bool> friend class Array;
};

template <class T_, int N_> using RestrictArray = Array<T_, N_, true>;

}  // namespace rekernel

#endif
