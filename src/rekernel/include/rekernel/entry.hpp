// How a C++ text becomes kernels: each function's signature as constant data, and the way from rk_call into it.
//
// The compiler reads this before the user's text (-include), so that no macro of the text can break it; the few lines
// that come after the text name its functions. The names end in an underscore: see array.hpp.
#ifndef REKERNEL_ENTRY
#define REKERNEL_ENTRY 1
#if defined(__GNUC__)
#pragma GCC system_header
#endif
#if !defined(__CUDACC_RTC__)  // see cuda.hpp
#include "kernel.hpp"
#endif

namespace rekernel_entry {

// One parameter, or the result, as rekernel.languages.cpp.signature reads it.
struct part {
    int form;     // 0 unsupported, 1 scalar, 2 pointer, 3 Array, 4 pointer to fixed arrays, 5 void
    int code;     // 'b' bool, 'i', 'u', 'f', 'c' complex; 0 for others
    int size;     // of the scalar or element, in bytes
    int rank;     // of an Array, or how many fixed extents
    int written;  // the elements are not const
    int restricted;
    int extents[3];  // fixed extents after the first axis
    int why;         // of something unsupported: see signature.py
};

template <class T_> constexpr bool named_complex() {
#if defined(__GNUC__)
    const char *name_ = __PRETTY_FUNCTION__;
    int size_ = 0;
    while (name_[size_]) ++size_;
    const char *const ends_[] = {"complex<float>]", "complex<double>]"};
    for (const char *end_ : ends_) {
        int length_ = 0;
        while (end_[length_]) ++length_;
        int at_ = 0;
        while (at_ < length_ && name_[size_ - length_ + at_] == end_[at_]) ++at_;
        if (at_ < length_) continue;
        for (int from_ = size_ - length_; from_ > 6; --from_)  // "T_ = std::", or of an inline namespace in it
            if (name_[from_ - 5] == 's' && name_[from_ - 4] == 't' && name_[from_ - 3] == 'd' &&
                name_[from_ - 2] == ':' && name_[from_ - 1] == ':' && name_[from_ - 6] == ' ')
                return true;
    }
#endif
    return false;
}

// Scalars and elements.
template <class T_, bool class_> struct kind_of { enum { code = 0, size = 0 }; };
template <class T_> struct kind_of<T_, true> {
#if defined(__CUDACC_RTC__)
    enum { code = class_code<T_>(), size = code ? sizeof(typename rekernel::detail::plain<T_>::type) : 0 };
#else
    enum { code = named_complex<T_>() ? 'c' : 0, size = code ? sizeof(typename rekernel::detail::plain<T_>::type) : 0 };
#endif
};
template <class T_> struct kind : kind_of<T_, __is_class(T_)> {};
template <class T_> struct kind<const T_> : kind<T_> {};
template <class T_> struct kind<volatile T_> : kind<T_> {};
template <class T_> struct kind<const volatile T_> : kind<T_> {};
#define REKERNEL_KIND(type, letter) \
    template <> struct kind<type> { enum { code = letter, size = sizeof(type) }; };
REKERNEL_KIND(bool, 'b')
REKERNEL_KIND(char, static_cast<char>(-1) < 0 ? 'i' : 'u')
REKERNEL_KIND(signed char, 'i')
REKERNEL_KIND(short, 'i')
REKERNEL_KIND(int, 'i')
REKERNEL_KIND(long, 'i')
REKERNEL_KIND(long long, 'i')
REKERNEL_KIND(unsigned char, 'u')
REKERNEL_KIND(unsigned short, 'u')
REKERNEL_KIND(unsigned int, 'u')
REKERNEL_KIND(unsigned long, 'u')
REKERNEL_KIND(unsigned long long, 'u')
REKERNEL_KIND(float, 'f')
REKERNEL_KIND(double, 'f')
#if !defined(__CUDACC__)
REKERNEL_KIND(float _Complex, 'c')
REKERNEL_KIND(double _Complex, 'c')
#endif
#if defined(__FLT16_MANT_DIG__) && !defined(__CUDACC__)
REKERNEL_KIND(_Float16, 'f')
#endif
#undef REKERNEL_KIND

template <class T_> struct is_const { enum { value = 0 }; };
template <class T_> struct is_const<const T_> { enum { value = 1 }; };

template <class T_> REKERNEL_BOTH T_ load(const rk_slot &slot_) {
    T_ value_;
    __builtin_memcpy(&value_, slot_.bytes, sizeof value_);
    return value_;
}

// What is wrong with a type: 1 a class, 2 a reference that is written, 3 a pointer to a pointer or function, 4 void*,
// 5 a number of a width that NumPy does not have, 6 an enumeration, 7 anything else.
template <class T_> struct reason { enum { value = __is_class(T_) || __is_union(T_) ? 1 : __is_enum(T_) ? 6 : 7 }; };
#if defined(__CUDACC_RTC__)
template <class T_> struct reason<T_ &> { enum { value = 8 }; };
template <class T_> struct reason<T_ &&> { enum { value = 8 }; };
#else
template <class T_> struct reason<T_ &> { enum { value = 2 }; };
template <class T_> struct reason<T_ &&> { enum { value = 2 }; };
#endif
template <class T_> struct reason<T_ *> { enum { value = 3 }; };
template <> struct reason<void> { enum { value = 4 }; };
template <> struct reason<const void> { enum { value = 4 }; };
template <> struct reason<long double> { enum { value = 5 }; };
template <> struct reason<wchar_t> { enum { value = 5 }; };
template <> struct reason<char16_t> { enum { value = 5 }; };
template <> struct reason<char32_t> { enum { value = 5 }; };
#if defined(__SIZEOF_INT128__)
template <> struct reason<__int128> { enum { value = 5 }; };
template <> struct reason<unsigned __int128> { enum { value = 5 }; };
#endif
template <class T_> struct reason<const T_> : reason<T_> {};

// A scalar by value.
template <class T_> struct parameter {
    static constexpr part described() {
        return kind<T_>::code ? part{1, kind<T_>::code, kind<T_>::size, 0, 0, 0, {}, 0}
                              : part{0, 0, 0, 0, 0, 0, {}, reason<T_>::value};
    }
    static REKERNEL_BOTH typename rekernel::detail::plain<T_>::type take(const rk_slot *&slot_) {
        return load<typename rekernel::detail::plain<T_>::type>(*slot_++);
    }
};

// A scalar, or an Array, by reference to const. A device could not follow it.
#if !defined(__CUDACC_RTC__)
template <class T_> struct parameter<const T_ &> : parameter<T_> {};
#endif

// The innermost element of nested fixed arrays, and their extents.
template <class T_> struct nest {
    using element = T_;
    static constexpr int rank = 0;
    static constexpr void fill(int *) {}
};
template <class T_, size_t extent_> struct nest<T_[extent_]> {
    using element = typename nest<T_>::element;
    static constexpr int rank = nest<T_>::rank + 1;
    static constexpr void fill(int *extents_) {
        *extents_ = static_cast<int>(extent_);
        nest<T_>::fill(extents_ + 1);
    }
};

// T*: C-contiguous, of any rank. T (*)[m][n]: with fixed extents after the first axis.
template <class T_> struct parameter<T_ *> {
    using element = typename nest<T_>::element;
    static constexpr part described() {
        part made_{nest<T_>::rank ? 4 : 2, kind<element>::code, kind<element>::size, nest<T_>::rank,
                   !is_const<element>::value, 0, {}, 0};
        if (!made_.code || nest<T_>::rank > 3)
            return part{0, 0, 0, 0, 0, 0, {}, kind<element>::code ? 7 : pointed<element>::value};
        nest<T_>::fill(made_.extents);
        return made_;
    }
    static REKERNEL_BOTH T_ *take(const rk_slot *&slot_) { return static_cast<T_ *>((slot_++)->p); }

    template <class P_> struct pointed { enum { value = static_cast<int>(reason<P_>::value) == 7 ? 3 : static_cast<int>(reason<P_>::value) }; };
};
template <class T_> struct parameter<T_ *const> : parameter<T_ *> {};
#if !defined(__CUDACC_RTC__)
template <class T_> struct parameter<T_ *const &> : parameter<T_ *> {};
#endif

// An array with any strides.
template <class T_, int N_, bool restrict_> struct parameter<rekernel::Array<T_, N_, restrict_>> {
    static constexpr part described() {
        return kind<T_>::code ? part{3, kind<T_>::code, kind<T_>::size, N_, !is_const<T_>::value, restrict_, {}, 0}
                              : part{0, 0, 0, 0, 0, 0, {}, reason<T_>::value};
    }
    static REKERNEL_BOTH rekernel::Array<T_, N_, restrict_> take(const rk_slot *&slot_) {
        constexpr int step_ = sizeof(rk_slot) / sizeof(long long);
        const rk_slot *from_ = slot_;
        slot_ += 1 + 2 * N_;
        return {static_cast<T_ *>(from_->p), &from_[1].i, &from_[1 + N_].i, step_};
    }
};
template <class T_, int N_, bool restrict_>
struct parameter<const rekernel::Array<T_, N_, restrict_>> : parameter<rekernel::Array<T_, N_, restrict_>> {};

// The result.
template <class R_> struct result {
    static constexpr part described() { return parameter<R_>::described().form == 1 ? parameter<R_>::described() : part{}; }
    template <class F_, class... A_> static REKERNEL_BOTH void call(rk_slot *to_, F_ f_, A_ &&...a_) {
        auto value_ = f_(static_cast<A_ &&>(a_)...);
        constexpr int code_ = kind<R_>::code;
        store(to_, value_, letter<code_ == 'i' ? 1 : code_ == 'u' || code_ == 'b' ? 2 : 0>{});
    }
    template <int> struct letter {};
    template <class V_> static REKERNEL_BOTH void store(rk_slot *to_, const V_ &value_, letter<0>) {
        __builtin_memcpy(to_->bytes, &value_, sizeof value_);
    }
    template <class V_> static REKERNEL_BOTH void store(rk_slot *to_, const V_ &value_, letter<1>) { to_->i = value_; }
    template <class V_> static REKERNEL_BOTH void store(rk_slot *to_, const V_ &value_, letter<2>) { to_->u = value_; }
};
template <> struct result<void> {
    static constexpr part described() { return part{5, 0, 0, 0, 0, 0, {}, 0}; }
    template <class F_, class... A_> static REKERNEL_BOTH void call(rk_slot *, F_ f_, A_ &&...a_) {
        f_(static_cast<A_ &&>(a_)...);
    }
};

// The record of one function: found in the object by its marker.
template <int count_> struct signature {
    char marker[32];
    int number;
    int count;
    part parts[count_ + 1];  // the result first
};
template <class R_, class... A_>
constexpr signature<sizeof...(A_)> rekernel_describe(R_ (*)(A_...), const char (&marker_)[33], int number_) {
    signature<sizeof...(A_)> made_{{}, number_, sizeof...(A_), {result<R_>::described(), parameter<A_>::described()...}};
    for (int at_ = 0; at_ < 32; ++at_) made_.marker[at_] = marker_[at_];
    return made_;
}

// Braces, not parentheses: arguments are taken from the slots in their order.
template <class R_> struct in_order {
    template <class F_, class... A_> REKERNEL_BOTH in_order(rk_slot *to_, F_ f_, A_ &&...a_) {
        result<R_>::call(to_, f_, static_cast<A_ &&>(a_)...);
    }
};

template <bool supported_> struct runner {
    template <class R_, class... A_> static REKERNEL_BOTH void run(rk_call *call_, R_ (*f_)(A_...)) {
        const rk_slot *slot_ = call_->slots;
        in_order<R_>{call_->result, f_, parameter<A_>::take(slot_)...};
        static_cast<void>(slot_);
    }
};
template <> struct runner<false> {
    template <class F_> static void run(rk_call *, F_) {}
};

template <class R_, class... A_> constexpr bool rekernel_supports(R_ (*)(A_...)) {
    const int forms_[] = {result<R_>::described().form, parameter<A_>::described().form...};
    for (int form_ : forms_)
        if (!form_) return false;
    return true;
}

// The type of a function that takes the first parameters of another: the last of its parameters have defaults.
template <int count_, class F_, class... A_> struct fewer;
template <class R_, class... Rest_, class... A_> struct fewer<0, R_ (*)(Rest_...), A_...> { using type = R_ (*)(A_...); };
template <int count_, class R_, class First_, class... Rest_, class... A_>
struct fewer<count_, R_ (*)(First_, Rest_...), A_...> : fewer<count_ - 1, R_ (*)(Rest_...), A_..., First_> {};
template <class R_, class First_, class... Rest_, class... A_> struct fewer<0, R_ (*)(First_, Rest_...), A_...> {
    using type = R_ (*)(A_...);
};
template <int count_, class R_, class... A_>
typename fewer<count_, R_ (*)(A_...)>::type rekernel_fewer(R_ (*)(A_...));

template <bool supported_, class F_> REKERNEL_BOTH void rekernel_run(rk_call *call_, F_ f_) {
    runner<supported_>::run(call_, f_);
}

}  // namespace rekernel_entry

// symbol_: of the entry point; number_: of the function in its text; the rest: its address. Only names that begin with
// rekernel, and keywords: the user's macros are in force here.
#define REKERNEL_ENTRY_POINT(symbol_, number_, marker_, ...)                                                       \
    extern "C" __attribute__((__used__, REKERNEL_VISIBLE)) const auto symbol_##_signature =                        \
        rekernel_entry::rekernel_describe(__VA_ARGS__, marker_, number_);                                          \
    extern "C" __attribute__((REKERNEL_VISIBLE)) int symbol_(rk_call *rekernel_call) {                             \
        try {                                                                                                      \
            REKERNEL_GUARDED(rekernel_call,                                                                        \
                             rekernel_entry::rekernel_run<rekernel_entry::rekernel_supports(__VA_ARGS__)>(         \
                                 rekernel_call, __VA_ARGS__))                                                      \
            ;                                                                                                      \
        } catch (...) {                                                                                            \
            return rekernel_caught(rekernel_call);                                                                 \
        }                                                                                                          \
        return 0;                                                                                                  \
    }

#endif
