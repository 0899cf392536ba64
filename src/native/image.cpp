// Shared objects from memory: bytes become loaded code that no file name leads to.
//
// Invariant: the path given to dlopen() was never used before in this process, because the loader answers a path that
// it knows with the old code. It is a numbered link in a new private directory, gone when open_image returns; so tools
// that look up loaded objects by name find no file rather than a wrong one. The GIL is held throughout: no other
// Python thread can fork while the dynamic loader holds its lock.
#include "function.hpp"
#include "floatenv.hpp"

#ifndef _WIN32
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <string>

namespace rekernel {

namespace {

unsigned long long images = 0;  // numbers links and files; goes on counting in a forked child

class Descriptor {
public:
    explicit Descriptor(int number) : number(number) {}
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    const int number;
};

// A new directory for one link or file; both are removed again by the destructor.
class PrivateDirectory {
public:
    // A directory on a disk takes milliseconds to make and remove, so `fast` asks for one in memory; but programs may
    // be forbidden there, so files do without.
    explicit PrivateDirectory(bool fast) {
        const char *const places[] = {fast ? "/dev/shm" : nullptr, std::getenv("TMPDIR"),
                                      std::getenv("XDG_RUNTIME_DIR"), "/tmp", "/var/tmp", "/dev/shm"};
        for (const char *place : places) {
            if (!place || *place != '/') continue;
            directory = std::string(place) + "/rekernel-XXXXXX";
            if (mkdtemp(directory.data())) {  // mode 0700
                entry = directory + "/" + std::to_string(++images);
                return;
            }
        }
        directory.clear();
    }
    ~PrivateDirectory() {
        if (directory.empty()) return;
        unlink(entry.c_str());
        rmdir(directory.c_str());
    }
    PrivateDirectory(const PrivateDirectory &) = delete;
    PrivateDirectory &operator=(const PrivateDirectory &) = delete;
    bool exists() const { return !directory.empty(); }
    std::string entry;

private:
    std::string directory;
};

void raise_load(const char *name, const char *reason) {
    PyErr_Format(PyExc_OSError, "the library of kernel '%s' cannot be loaded: %s", name,
                 reason ? reason : "unknown error");
}

void *open_path(const char *name, const char *path) {
    FloatEnvironment environment;  // constructors of a library may change it
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    environment.restore();
    if (!handle) raise_load(name, dlerror());
    return handle;
}

bool write_all(int descriptor, const void *data, size_t size) {
    const char *next = static_cast<const char *>(data);
    while (size > 0) {
        ssize_t written = write(descriptor, next, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        next += written;
        size -= static_cast<size_t>(written);
    }
    return true;
}

int make_memory_file(const char *name) {
#if defined(__linux__) && defined(SYS_memfd_create)
    constexpr unsigned close_on_exec = 1, executable = 0x10;
    // Systems that forbid executable memory files by default want to be asked; older ones do not know the flag.
    std::string label = std::string("rekernel:").append(name).substr(0, 200);
    long made = syscall(SYS_memfd_create, label.c_str(), close_on_exec | executable);
    if (made < 0 && errno == EINVAL) made = syscall(SYS_memfd_create, label.c_str(), close_on_exec);
    return static_cast<int>(made);
#else
    (void)name;
    return -1;
#endif
}

// A path of /proc that was never used before: between its parts stand the bits of a number, as "./" and ".//".
std::string unique_proc_path(const std::string &target) {
    std::string path = "/proc/self/";
    for (unsigned long long number = ++images; number; number >>= 1) path += number & 1 ? ".//" : "./";
    return path + target;
}

// Tried first. False without an exception: there are no memory files here, or none that may be executed.
bool open_in_memory(const char *name, const void *data, size_t size, void *&handle) {
    Descriptor file(make_memory_file(name));
    if (file.number < 0 || !write_all(file.number, data, size)) return false;
    std::string target = "fd/" + std::to_string(file.number);
    if (access(("/proc/self/" + target).c_str(), R_OK) != 0) return false;
    PrivateDirectory directory(true);
    if (directory.exists() && symlink(("/proc/self/" + target).c_str(), directory.entry.c_str()) == 0) {
        handle = open_path(name, directory.entry.c_str());
    } else {
        handle = open_path(name, unique_proc_path(target).c_str());
    }
    return handle != nullptr;
}

void *open_in_file(const char *name, const void *data, size_t size) {
    PrivateDirectory directory(false);
    if (!directory.exists()) {
        const char *reason = "no directory for a temporary file can be written (tried TMPDIR, XDG_RUNTIME_DIR, /tmp, "
                             "/var/tmp, /dev/shm)";
        if (!PyErr_Occurred()) raise_load(name, reason);
        return nullptr;
    }
    PyErr_Clear();
    {
        Descriptor file(open(directory.entry.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
        if (file.number < 0 || !write_all(file.number, data, size)) {
            PyErr_SetFromErrnoWithFilename(PyExc_OSError, directory.entry.c_str());
            return nullptr;
        }
    }
    return open_path(name, directory.entry.c_str());
}

}  // namespace

void *open_image(const char *name, const void *data, size_t size) {
    void *handle = nullptr;
    if (open_in_memory(name, data, size, handle)) return handle;
    // A library that is itself broken fails again here, with the same words.
    return open_in_file(name, data, size);
}

void *open_file(const char *name, const char *path) { return open_path(name, path); }

void close_image(void *handle) {
    FloatEnvironment environment;
    dlclose(handle);
    environment.restore();
}

void *find_symbol(void *handle, const char *symbol) {
    void *address = dlsym(handle, symbol);
    if (address) return address;
    const char *reason = dlerror();
    PyErr_Format(PyExc_OSError, "%s", reason ? reason : "the symbol has no address");
    return nullptr;
}

bool hold_library(const char *name) {
    if (dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return true;
    PyErr_Format(PyExc_OSError, "%s", dlerror());
    return false;
}

}  // namespace rekernel

#else

namespace rekernel {

namespace {

void *raise_unsupported() {
    PyErr_SetString(PyExc_OSError, "compiled CPU kernels cannot be loaded on Windows");
    return nullptr;
}

}  // namespace

void *open_image(const char *, const void *, size_t) { return raise_unsupported(); }
void *open_file(const char *, const char *) { return raise_unsupported(); }
void close_image(void *) {}
void *find_symbol(void *, const char *) { return raise_unsupported(); }
bool hold_library(const char *) { return raise_unsupported() != nullptr; }

}  // namespace rekernel

#endif
