// How rekernel calls a compiled kernel. This text includes nothing, so that it costs nothing to compile.
//
// int rk_<name>_<n>(rk_call *call) returns 0, or another number after it has filled call->error. Nothing is thrown
// through it. Sizes are those of every 64-bit platform: int has 32 bits, long long 64.
#ifndef REKERNEL_ABI
#define REKERNEL_ABI 1

extern "C" {

// One argument or the result. Integers of every width, and bool, are extended into i or u; h is a float16's bits.
typedef union {
    void *p;
    long long i;
    unsigned long long u;
    double d;
    float f;
    unsigned short h;
    float cf[2];
    double cd[2];
    unsigned char bytes[16];
} rk_slot;

// kind: 1 a C++ exception (text = what()), 2 an index out of range, 3 a division, 4 an assertion.
typedef struct {
    int kind;
    int line;
    long long index;
    long long extent;
    int axis;
    int size;    // of text, in bytes, with the final zero
    char *text;  // memory of the caller
    const char *file;  // of the line, where that is not the kernel's own text; lives as long as the code
} rk_error;

// describe: called inside of `catch (...)`, it fills the error from the exception.
typedef struct {
    unsigned abi;
    unsigned count;
    const rk_slot *slots;
    rk_slot *result;
    rk_error *error;
    void (*describe)(rk_error *);
} rk_call;

}

#endif
