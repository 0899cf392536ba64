// A libcuda without a device, for tests: it remembers what it was asked, and fails where it is told to.
//
// Everything that a test asks or tells begins with fake_; the rest are the driver's own functions.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Launched {
    void *function, *context, *stream;
    unsigned grid[3], block[3], shared;
    std::uint32_t size;  // of the parameters' bytes, one after the other
    unsigned char bytes[1024];
};

std::mutex mutex;
std::condition_variable opened;
bool closed = false;
std::vector<Launched> launches;
unsigned long long count = 0;
std::map<void *, std::vector<std::uint32_t>> sizes;  // of the parameters of a function
std::map<std::string, int> failures;
std::map<unsigned long long, std::pair<int, unsigned>> pointers;  // address -> device, memory type
std::string log_text;
void *capturing = nullptr;
std::uintptr_t next_event = 0xe0000;
int events_alive = 0;
bool remembers = true;
std::intptr_t streams[8];
thread_local std::vector<void *> contexts;

int outcome(const char *name) {
    auto found = failures.find(name);
    return found == failures.end() ? 0 : found->second;
}

void note(const std::string &line) { log_text += line + "\n"; }

std::string hex(const void *pointer) {
    char text[32];
    std::snprintf(text, sizeof text, "%#zx", reinterpret_cast<std::size_t>(pointer));
    return text;
}

}  // namespace

extern "C" {

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **) {
    std::unique_lock<std::mutex> lock(mutex);
    if (closed && !opened.wait_for(lock, std::chrono::seconds(20), [] { return !closed; })) return 702;
    int code = outcome("cuLaunchKernel");
    if (code != 0) return code;
    ++count;
    if (!remembers) return 0;
    Launched launch = {function, contexts.empty() ? nullptr : contexts.back(), stream, {gx, gy, gz}, {bx, by, bz},
                       shared, 0, {}};
    const std::vector<std::uint32_t> &each = sizes[function];
    for (std::size_t i = 0; i < each.size() && launch.size + each[i] <= sizeof launch.bytes; ++i) {
        std::memcpy(launch.bytes + launch.size, parameters[i], each[i]);
        launch.size += each[i];
    }
    launches.push_back(launch);
    note("launch " + hex(stream));
    return 0;
}

int cuCtxGetCurrent(void **context) {
    *context = contexts.empty() ? nullptr : contexts.back();
    return outcome("cuCtxGetCurrent");
}

int cuCtxPushCurrent_v2(void *context) {
    std::lock_guard<std::mutex> lock(mutex);
    if (int code = outcome("cuCtxPushCurrent")) return code;
    contexts.push_back(context);
    note("push " + hex(context));
    return 0;
}

int cuCtxPopCurrent_v2(void **context) {
    std::lock_guard<std::mutex> lock(mutex);
    *context = contexts.back();
    contexts.pop_back();
    note("pop " + hex(*context));
    return 0;
}

int cuStreamIsCapturing(void *stream, int *status) {
    std::lock_guard<std::mutex> lock(mutex);
    note("capturing? " + hex(stream));
    *status = capturing && stream == capturing;
    return outcome("cuStreamIsCapturing");
}

int cuEventCreate(void **event, unsigned) {
    std::lock_guard<std::mutex> lock(mutex);
    if (int code = outcome("cuEventCreate")) return code;
    *event = reinterpret_cast<void *>(next_event++);
    ++events_alive;
    return 0;
}

int cuEventRecord(void *, void *stream) {
    std::lock_guard<std::mutex> lock(mutex);
    note("record " + hex(stream));
    return outcome("cuEventRecord");
}

int cuStreamWaitEvent(void *stream, void *, unsigned) {
    std::lock_guard<std::mutex> lock(mutex);
    note("wait " + hex(stream));
    return outcome("cuStreamWaitEvent");
}

int cuEventDestroy_v2(void *) {
    std::lock_guard<std::mutex> lock(mutex);
    --events_alive;
    return 0;
}

int cuPointerGetAttribute(void *out, int attribute, unsigned long long pointer) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = pointers.find(pointer);
    if (found == pointers.end()) return 1;
    if (attribute == 9) *static_cast<int *>(out) = found->second.first;
    else if (attribute == 2) *static_cast<unsigned *>(out) = found->second.second;
    else return 1;
    return 0;
}

int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    std::lock_guard<std::mutex> lock(mutex);
    note("attribute " + hex(function) + " " + std::to_string(attribute) + " " + std::to_string(value));
    return outcome("cuFuncSetAttribute");
}

int cuGetErrorName(int code, const char **name) {
    if (code == 1) *name = "CUDA_ERROR_INVALID_VALUE";
    else if (code == 700) *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    else if (code == 701) *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    else return 1;
    return 0;
}

int cuGetErrorString(int code, const char **text) {
    if (code == 700) *text = "an illegal memory access was encountered";
    else return 1;
    return 0;
}

void fake_reset() {
    std::lock_guard<std::mutex> lock(mutex);
    launches.clear();
    sizes.clear();
    failures.clear();
    pointers.clear();
    log_text.clear();
    contexts.clear();
    std::memset(streams, 0, sizeof streams);
    capturing = nullptr;
    count = 0;
    closed = false;
    remembers = true;
}

void fake_fail(const char *name, int code) {
    std::lock_guard<std::mutex> lock(mutex);
    if (code) failures[name] = code;
    else failures.erase(name);
}

void fake_sizes(void *function, int number, const std::uint32_t *each) {
    std::lock_guard<std::mutex> lock(mutex);
    sizes[function].assign(each, each + number);
}

void fake_pointer(unsigned long long address, int device, unsigned type) {
    std::lock_guard<std::mutex> lock(mutex);
    pointers[address] = {device, type};
}

void fake_current(void *context) {
    contexts.clear();
    if (context) contexts.push_back(context);
}

void fake_capture(void *stream) {
    std::lock_guard<std::mutex> lock(mutex);
    capturing = stream;
}

void fake_gate(int shut) {
    std::lock_guard<std::mutex> lock(mutex);
    closed = shut != 0;
    if (!closed) opened.notify_all();
}

void fake_forget() { remembers = false; }

unsigned long long fake_count() { return count; }
int fake_events() { return events_alive; }
const char *fake_log() { return log_text.c_str(); }
const Launched *fake_launch(int index) {
    std::size_t place = static_cast<std::size_t>(index < 0 ? index + static_cast<int>(launches.size()) : index);
    return place < launches.size() ? &launches[place] : nullptr;
}

// As CuPy's own function of a device.
std::intptr_t fake_stream_of(int device) { return streams[device & 7]; }
void fake_set_stream(int device, std::intptr_t stream) { streams[device & 7] = stream; }
}
