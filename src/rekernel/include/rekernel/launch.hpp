// What NVRTC reads before the text of a kernel whose parameter table is given: the compiler confirms that the rekernel_table and
// the function agree. A wrong rekernel_table is an error here, never memory read as something else.
//
// Only names that begin with rekernel are used after the text: the user's macros are in force there.
#ifndef REKERNEL_LAUNCH
#define REKERNEL_LAUNCH 1

namespace rekernel_launch {

template <class T_> struct pointer { enum { value = 0 }; using target = T_; };
template <class T_> struct pointer<T_ *> { enum { value = 1 }; using target = T_; };
template <class T_> struct pointer<const T_ *> : pointer<T_ *> {};
template <class T_> struct pointer<T_ *const> : pointer<T_ *> {};

template <class T_, int number_> struct letter {
    enum {
        value = static_cast<T_>(0.5) != static_cast<T_>(0) ? 'f' : static_cast<T_>(-1) < static_cast<T_>(0) ? 'i' : 'u'
    };
};
template <class T_> struct letter<T_, 0> { enum { value = 0 }; };

// One row of the table: 'i', 'u', 'f', or 'x' where only the size is known; the size of the number or element; whether
// the parameter is a pointer.
template <int code_, int size_, int pointer_> struct rekernel_row {};

template <class T_, class Row_> struct agree;
template <class T_, int code_, int size_, int pointer_> struct agree<T_, rekernel_row<code_, size_, pointer_>> {
    using target = typename pointer<T_>::target;
    static_assert(pointer<T_>::value == pointer_, "the parameter table and the function disagree about a pointer");
    static_assert(sizeof(target) == size_, "the parameter table and the function disagree about a size");
    static_assert(code_ == 'x' || letter<target, code_ != 'x'>::value == code_,
                  "the parameter table and the function disagree about a type");
    enum { value = 1 };
};

template <class... T_> struct list {};
template <bool same_, class Types_, class Rows_> struct compare {
    static_assert(same_, "the parameter table and the function disagree about how many parameters there are");
    enum { value = 1 };
};
template <class... T_, class... Row_> struct compare<true, list<T_...>, list<Row_...>> {
    enum { value = (1 * ... * static_cast<int>(agree<T_, Row_>::value)) };
};

template <class F_, class... Row_> struct rekernel_table;
template <class... T_, class... Row_> struct rekernel_table<void (*)(T_...), Row_...> {
    enum { rekernel_value = compare<sizeof...(T_) == sizeof...(Row_), list<T_...>, list<Row_...>>::value };
};

}  // namespace rekernel_launch

#define REKERNEL_ROW(code_, size_, pointer_) rekernel_launch::rekernel_row<code_, size_, pointer_>
// function_: in parentheses, for a template's arguments have commas; the rest: the rows.
#define REKERNEL_CONFIRM(function_, ...)                                                            \
    static_assert(                                                                                  \
        rekernel_launch::rekernel_table<decltype(&REKERNEL_PLAIN function_), ##__VA_ARGS__>::rekernel_value, "");
#define REKERNEL_PLAIN(...) __VA_ARGS__

#endif
