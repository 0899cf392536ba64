// debug=True: what a failed check does. It notes what was wrong and leaves the kernel by a jump to its entry point: a
// throw could not pass a noexcept function or a destructor. Destructors on the way are skipped.
//
// On a thread that the kernel has started itself there is nothing to jump to. A wrong index is noted, and another place
// in memory is read or written instead; a wrong division or assertion is noted and ends the thread. The call raises
// when it ends, and so do other calls of this version that are under way: nobody knows whose thread it was.
#ifndef REKERNEL_CHECKS
#define REKERNEL_CHECKS 1
#if defined(__GNUC__)
#pragma GCC system_header
#endif

// Clang has the jumps of its own only for some processors.
#if defined(__clang__) && !defined(__x86_64__)
#include <setjmp.h>
#define REKERNEL_MARK(place_) _setjmp(place_)
#define REKERNEL_JUMP(place_) _longjmp(place_, 1)
namespace rekernel_checks {
typedef jmp_buf place;
}
#else
#define REKERNEL_MARK(place_) __builtin_setjmp(place_)
#define REKERNEL_JUMP(place_) __builtin_longjmp(place_, 1)
namespace rekernel_checks {
typedef void *place[5];
}
#endif

// Of the C++ ABI: the exceptions that a thread has caught and not yet done with.
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals *__cxa_get_globals() noexcept __attribute__((__const__));
extern "C" void __cxa_end_catch();
}  // namespace __cxxabiv1
extern "C" __attribute__((__noreturn__)) void pthread_exit(void *);

namespace rekernel_checks {

struct exceptions {
    void *caught;
    unsigned thrown;
};
static exceptions *of_thread() { return reinterpret_cast<exceptions *>(__cxxabiv1::__cxa_get_globals()); }

struct frame;
static frame *frames = nullptr;  // of the calls that are under way, the newest first
static bool busy = false;        // somebody reads or changes them
static thread_local frame *current = nullptr;

struct turn {
    turn() {
        while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) continue;
    }
    ~turn() { __atomic_clear(&busy, __ATOMIC_RELEASE); }
};

// A call that is under way.
struct frame {
    explicit frame(rk_call *call_) : error(call_->error), outer(current), before(*of_thread()) {
        turn turn_;
        next = frames;
        frames = current = this;
    }
    ~frame() {
        turn turn_;
        frame **link_ = &frames;
        while (*link_ != this) link_ = &(*link_)->next;
        *link_ = next;
        current = outer;
    }
    rk_error *error;
    frame *outer;
    frame *next;
    exceptions before;
    place entry;
    volatile bool failed = false;
};

// What a check has to say.
struct note {
    note(int kind_, const char *file_, unsigned line_)
        : said{kind_, static_cast<int>(line_), 0, 0, 0, 0, nullptr, file_} {
        if (file_ && !__builtin_strcmp(file_, REKERNEL_UNIT)) said.file = nullptr;
    }
    note &operator<<(const char *text_) {
        while (*text_ && at < static_cast<int>(sizeof text) - 1) text[at++] = *text_++;
        text[at] = 0;
        return *this;
    }
    note &operator<<(long long number_) {
        char digits_[24];
        int first_ = 23;
        digits_[first_] = 0;
        unsigned long long rest_ = number_ < 0 ? -static_cast<unsigned long long>(number_) : number_;
        do digits_[--first_] = static_cast<char>('0' + rest_ % 10);
        while (rest_ /= 10);
        if (number_ < 0) digits_[--first_] = '-';
        return *this << digits_ + first_;
    }
    // The first thing that goes wrong in a call is what it raises.
    __attribute__((__noinline__)) void leave() const {
        publish();
        if (!current) return;
        // A jump out of a catch block or of a destructor: what was caught is done with. Before the jump, for the
        // destructor of an exception may look at the kernel's variables.
        while (of_thread()->caught && of_thread()->caught != current->before.caught) __cxxabiv1::__cxa_end_catch();
        of_thread()->thrown = current->before.thrown;
        REKERNEL_JUMP(current->entry);
    }
    __attribute__((__noreturn__)) void stop() const {
        leave();
        pthread_exit(nullptr);
    }
    rk_error said;

private:
    void publish() const {
        turn turn_;
        for (frame *frame_ = frames; frame_; frame_ = frame_->next) {
            if (frame_->failed || (current && frame_ != current)) continue;
            rk_error &error_ = *frame_->error;
            const int size_ = error_.size;
            char *const text_ = error_.text;
            error_ = said;
            error_.size = size_;
            error_.text = text_;
            for (int at_ = 0; text_ && at_ < size_; ++at_) {
                text_[at_] = at_ < size_ - 1 && at_ < at ? text[at_] : '\0';
                if (!text_[at_]) break;
            }
            frame_->failed = true;
        }
    }
    int at = 0;
    char text[1024] = "";
};

}  // namespace rekernel_checks

namespace rekernel {
namespace detail {

__attribute__((__noinline__, __cold__)) void out_of_range(const index &index_, int axis_, int rank_,
                                                          const long long *shape_) {
    rekernel_checks::note note_(2, index_.file, static_cast<unsigned>(index_.line));
    note_.said.index = index_.value;
    note_.said.axis = axis_;
    note_.said.extent = shape_[axis_];
    note_ << "an array of shape (";
    for (int each_ = 0; each_ < rank_; ++each_) note_ << (each_ ? ", " : "") << shape_[each_];
    note_ << (rank_ == 1 ? ",)" : ")");
    note_.leave();
}

}  // namespace detail
}  // namespace rekernel

extern "C" {

// What assert() of the C library calls, under another name: its own is declared as what throws nothing, and the end of
// a thread is a kind of throw.
__attribute__((__noreturn__, __used__)) void rekernel_failed_assert(const char *text_, const char *file_,
                                                                    unsigned line_, const char *)
    __asm__("__assert_fail");
void rekernel_failed_assert(const char *text_, const char *file_, unsigned line_, const char *) {
    rekernel_checks::note note_(4, file_, line_);
    (note_ << "assert(" << text_ << ") failed").stop();
}

// What -D_GLIBCXX_ASSERTIONS makes of a wrong index into a std::array or std::vector. Its line is one of the library's.
__attribute__((__noreturn__, __used__)) void rekernel_failed_library(const char *, int, const char *function_,
                                                                     const char *text_)
    __asm__("_ZSt21__glibcxx_assert_failPKciS0_S0_");
void rekernel_failed_library(const char *, int, const char *function_, const char *text_) {
    rekernel_checks::note note_(4, nullptr, 0);
    (note_ << text_ << " does not hold in " << function_).stop();
}

// What code calls that is compiled with -fsanitize=integer-divide-by-zero,signed-integer-overflow.
struct rekernel_sanitized {
    const char *file;
    unsigned line;
    unsigned column;
    const struct {
        unsigned short kind;
        unsigned short bits;  // the logarithm of how many, times 2, and 1 if it has a sign
    } *type;
};
// A number of more than 64 bits is given by its address.
void __ubsan_handle_divrem_overflow(rekernel_sanitized *data_, unsigned long, unsigned long divisor_) {
    bool zero_ = divisor_ == 0;
    if (data_->type->bits >> 1 > 6) zero_ = !*reinterpret_cast<const unsigned __int128 *>(divisor_);
    rekernel_checks::note note_(3, data_->file, data_->line);
    note_ << (zero_ ? "integer division or modulo by zero"
                    : "the quotient of the smallest integer and -1 does not fit");
    note_.stop();
}
// Overflow of other kinds wraps around, as it does without debug=True.
void __ubsan_handle_add_overflow(void *, unsigned long, unsigned long) {}
void __ubsan_handle_sub_overflow(void *, unsigned long, unsigned long) {}
void __ubsan_handle_mul_overflow(void *, unsigned long, unsigned long) {}
void __ubsan_handle_negate_overflow(void *, unsigned long) {}
}

#define REKERNEL_GUARDED(call_, ...)                                  \
    rekernel_checks::frame rekernel_frame(call_);                     \
    if (REKERNEL_MARK(rekernel_frame.entry)) return 2;                \
    __VA_ARGS__;                                                      \
    if (rekernel_frame.failed) return 2

#endif
