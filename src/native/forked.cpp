// OpenMP after a fork.
//
// Invariant: a process that has run an OpenMP kernel has a pool of threads that its forked children only seem to have;
// a child that would use the pool would wait for ever. So such a child, and its own children, refuse. Forks are counted
// by the C library's own hook: a fork that Python does not know of counts, too. All of it is touched with the GIL held
// or by a child that has just one thread.
#include "function.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace rekernel {

namespace {

unsigned long long generation = 1;  // of this process
unsigned long long pool = 0;        // the generation that has the pool; 0: none

}  // namespace

bool watch_forks() {
#ifndef _WIN32
    static bool watching = false;
    if (!watching && pthread_atfork(nullptr, nullptr, [] { ++generation; }) != 0) {
        PyErr_NoMemory();
        return false;
    }
    watching = true;
#endif
    return true;
}

bool enter_openmp(const Function *function) {
    if (pool == 0) pool = generation;
    if (pool == generation) return true;
    PyErr_Format(PyExc_RuntimeError,
                 "%U() uses OpenMP and cannot run in this process: it was forked from one that had run OpenMP kernels, "
                 "and would hang. Start processes with multiprocessing's 'spawn' or 'forkserver', or build the kernel "
                 "without OpenMP",
                 function->name);
    return false;
}

}  // namespace rekernel
