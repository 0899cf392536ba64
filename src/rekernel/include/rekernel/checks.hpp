// debug=True: what a failed check does. It notes what was wrong and leaves the kernel by a jump to its entry point: a
// throw could not pass a noexcept function or a destructor. Destructors on the way are skipped.
//
// On a thread that the kernel has started itself there is nothing to jump to: the index is noted, another place in
// memory is read or written instead, and the call raises when it ends.
#ifndef REKERNEL_CHECKS
#define REKERNEL_CHECKS 1
#if defined(__GNUC__)
#pragma GCC system_header
#endif

namespace rekernel_checks {

struct frame;
static frame *latest = nullptr;
static thread_local frame *current = nullptr;

// A call that is under way.
struct frame {
    explicit frame(rk_call *call_) : call(call_), outer(current) { latest = current = this; }
    ~frame() { latest = current = outer; }
    rk_call *call;
    frame *outer;
    void *place[5];
    volatile bool failed = false;
};

static void write(rk_error *error_, int &at_, const char *text_) {
    if (error_->text)
        while (*text_ && at_ < error_->size - 1) error_->text[at_++] = *text_++;
    if (error_->text && error_->size > 0) error_->text[at_] = 0;
}

static void write(rk_error *error_, int &at_, long long number_) {
    char digits_[24];
    int first_ = 23;
    digits_[first_] = 0;
    unsigned long long rest_ = number_ < 0 ? -static_cast<unsigned long long>(number_) : number_;
    do digits_[--first_] = static_cast<char>('0' + rest_ % 10);
    while (rest_ /= 10);
    if (number_ < 0) digits_[--first_] = '-';
    write(error_, at_, digits_ + first_);
}

// The record to fill, or nothing where an error is noted already.
static rk_error *noted(int kind_, int line_) {
    frame *frame_ = current ? current : latest;
    if (!frame_ || frame_->failed) return nullptr;
    frame_->failed = true;
    rk_error *error_ = frame_->call->error;
    error_->kind = kind_;
    error_->line = line_;
    return error_;
}

__attribute__((noinline)) static void leave() {
    if (current) __builtin_longjmp(current->place, 1);
}

}  // namespace rekernel_checks

namespace rekernel {
namespace detail {

__attribute__((noinline, cold)) void *out_of_range(int line_, long long index_, int axis_, int rank_,
                                                   const long long *shape_) {
    if (rk_error *error_ = rekernel_checks::noted(2, line_)) {
        error_->index = index_;
        error_->axis = axis_;
        error_->extent = shape_[axis_];
        int at_ = 0;
        rekernel_checks::write(error_, at_, "an array of shape (");
        for (int each_ = 0; each_ < rank_; ++each_) {
            if (each_) rekernel_checks::write(error_, at_, ", ");
            rekernel_checks::write(error_, at_, shape_[each_]);
        }
        rekernel_checks::write(error_, at_, rank_ == 1 ? ",)" : ")");
    }
    rekernel_checks::leave();
    alignas(16) static thread_local unsigned char elsewhere_[16];
    return elsewhere_;
}

}  // namespace detail
}  // namespace rekernel

extern "C" {

// What assert() of glibc calls.
#if defined(__has_include)
#if __has_include(<bits/libc-header-start.h>)
__attribute__((noreturn)) void __assert_fail(const char *text_, const char *, unsigned line_, const char *) noexcept {
    if (rk_error *error_ = rekernel_checks::noted(4, static_cast<int>(line_))) {
        int at_ = 0;
        rekernel_checks::write(error_, at_, "assert(");
        rekernel_checks::write(error_, at_, text_);
        rekernel_checks::write(error_, at_, ") failed");
    }
    rekernel_checks::leave();
    __builtin_trap();
}
#endif
#endif

// What -D_GLIBCXX_ASSERTIONS makes of a wrong index into a std::array or std::vector. Its line is one of the C++ library's.
}
#if defined(__has_include)
#if __has_include(<bits/c++config.h>)
namespace std {
__attribute__((noreturn)) void __glibcxx_assert_fail(const char *, int, const char *function_, const char *text_) noexcept {
    if (rk_error *error_ = rekernel_checks::noted(4, 0)) {
        int at_ = 0;
        rekernel_checks::write(error_, at_, text_);
        rekernel_checks::write(error_, at_, " does not hold in ");
        rekernel_checks::write(error_, at_, function_);
    }
    rekernel_checks::leave();
    __builtin_trap();
}
}  // namespace std
#endif
#endif
extern "C" {

// What code calls that is compiled with -fsanitize=integer-divide-by-zero,signed-integer-overflow.
struct rekernel_sanitized {
    const char *file;
    unsigned line;
    unsigned column;
};
void __ubsan_handle_divrem_overflow(rekernel_sanitized *data_, unsigned long, unsigned long divisor_) {
    if (rk_error *error_ = rekernel_checks::noted(3, static_cast<int>(data_->line))) {
        int at_ = 0;
        rekernel_checks::write(error_, at_, divisor_ == 0 ? "integer division or modulo by zero"
                                                          : "the quotient of the smallest integer and -1 does not fit");
    }
    rekernel_checks::leave();
}
// Overflow of other kinds wraps around, as it does without debug=True.
void __ubsan_handle_add_overflow(void *, unsigned long, unsigned long) {}
void __ubsan_handle_sub_overflow(void *, unsigned long, unsigned long) {}
void __ubsan_handle_mul_overflow(void *, unsigned long, unsigned long) {}
void __ubsan_handle_negate_overflow(void *, unsigned long) {}
}

#define REKERNEL_GUARDED(call_, ...)                                \
    rekernel_checks::frame rekernel_frame(call_);                   \
    if (__builtin_setjmp(rekernel_frame.place)) return 2;           \
    __VA_ARGS__;                                                    \
    if (rekernel_frame.failed) return 2

#endif
