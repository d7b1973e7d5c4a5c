// The C interface on programs built by hand: ports, runs, what it refuses, background runs, devices, forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "hetnn/capi/handles.h"
#include "hetnn/capi/hetnn.h"
#include "hetnn/capi/hetnn.hpp"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"
#include "runtime/count_allocations.h"

namespace hetnn {
namespace {

using program::Place;
using testing::HasSubstr;
using testing::StartsWith;

// y = relu(x + 1) on the cpu, or whatever the code computes elsewhere, for x f32[n,4] with n in 1..1000.
program::Program one_step(const program::Code& code, const char* device) {
  const Dim n = Dim::symbol("n");
  program::Program p;
  p.symbols = {{"n", 1, 1000, 2}};
  p.buffers = {{.name = "x", .shape = {n, 4}, .place = Place::input},
               {.name = "y", .shape = {n, 4}, .place = Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 1}};
  p.subprograms = {{"part", device, {0}, {1}, {}, code}};
  return p;
}

program::Program relu() {
  return one_step(program::write_cpu_code({{{.op = &ops::OpTable::global().get("relu"),
                                             .attrs = {},
                                             .inputs = {0},
                                             .outputs = {1},
                                             .steps = {},
                                             .variant = "unary",
                                             .options = {},
                                             .node = "relu"}}}),
                  "cpu");
}

struct Freed {
  void operator()(hetnn_executable* executable) const { hetnn_free(executable); }
};
using Loaded = std::unique_ptr<hetnn_executable, Freed>;

Loaded load(const program::Program& p, const hetnn_options* options = nullptr) {
  const program::Image image = program::pack(p);
  hetnn_executable* out = nullptr;
  EXPECT_EQ(hetnn_load_memory(image.data(), image.size(), options, &out), HETNN_OK) << hetnn_error_message();
  return Loaded(out);
}

// f32[n,4] in and out.
struct Arrays {
  int64_t dims[2];
  std::vector<float> x, y;
  hetnn_tensor in, out;

  explicit Arrays(int64_t n) : dims{n, 4}, x(static_cast<size_t>(n) * 4), y(x.size(), -1) {
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 5) - 2;
    in = {sizeof in, x.data(), HETNN_F32, 2, dims};
    out = {sizeof out, y.data(), HETNN_F32, 2, dims};
  }
  std::vector<float> expected() const {
    std::vector<float> e;
    for (const float value : x) e.push_back(std::max(value, 0.0F));
    return e;
  }
};

TEST(C, HasEveryElementTypeAtItsSize) {
  for (const DType dtype : kAllDTypes)
    EXPECT_EQ(api_v1::detail::bytes_of(capi::c_dtype(dtype)), static_cast<size_t>(dtype_bytes(dtype)))
        << dtype_name(dtype);
}

TEST(C, SaysWhatGoesInAndOut) {
  const Loaded executable = load(relu());
  EXPECT_EQ(hetnn_input_count(executable.get()), 1U);
  EXPECT_EQ(hetnn_output_count(executable.get()), 1U);
  hetnn_port port{};
  port.size = sizeof port;
  ASSERT_EQ(hetnn_input(executable.get(), 0, &port), HETNN_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.dtype, HETNN_F32);
  ASSERT_EQ(port.rank, 2);
  EXPECT_EQ(port.dims[0], -1);
  EXPECT_EQ(port.dims[1], 4);
  EXPECT_EQ(hetnn_output(executable.get(), 1, &port), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "there is no output 1; the executable has 1.");
}

TEST(C, WritesOutputsWhereTheyLieOrMakesThem) {
  const Loaded executable = load(relu());
  Arrays a(3);
  ASSERT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &a.out, 1), HETNN_OK) << hetnn_error_message();
  EXPECT_EQ(a.y, a.expected());
  hetnn_tensor made{};
  made.size = sizeof made;
  ASSERT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &made, 1), HETNN_OK) << hetnn_error_message();
  ASSERT_EQ(made.rank, 2);
  EXPECT_EQ(made.dims[0], 3);
  EXPECT_EQ(std::memcmp(made.data, a.y.data(), a.y.size() * sizeof(float)), 0);
  hetnn_tensor_free(&made);
  EXPECT_EQ(made.data, nullptr);
  hetnn_tensor_free(&made);
}

// C++ may make anything of a bool that is neither.
TEST(C, RefusesBoolsThatAreNeither0Nor1) {
  program::Program p = one_step(program::write_cpu_code({{{.op = &ops::OpTable::global().get("logical_not"),
                                                           .attrs = {},
                                                           .inputs = {0},
                                                           .outputs = {1},
                                                           .steps = {},
                                                           .variant = "",
                                                           .options = {},
                                                           .node = "not"}}}),
                                "cpu");
  for (program::Buffer& buffer : p.buffers) buffer.dtype = DType::boolean;
  const Loaded executable = load(p);
  const int64_t dims[] = {1, 4};
  uint8_t x[] = {0, 1, 0, 1}, y[] = {9, 9, 9, 9};
  const hetnn_tensor in{sizeof in, x, HETNN_BOOL, 2, dims};
  hetnn_tensor out{sizeof out, y, HETNN_BOOL, 2, dims};
  ASSERT_EQ(hetnn_run(executable.get(), nullptr, &in, 1, &out, 1), HETNN_OK) << hetnn_error_message();
  EXPECT_THAT(y, testing::ElementsAre(1, 0, 1, 0));
  x[2] = 3;
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &in, 1, &out, 1), HETNN_INVALID_MODEL);
  EXPECT_THAT(hetnn_error_message(), HasSubstr("input 'x': element 2 of a bool is the byte 3; expected 0 or 1"));
}

TEST(C, ARunLikeTheLastAllocatesNothing) {
  const Loaded executable = load(relu());
  Arrays a(3);
  int64_t after_first = 0;
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &a.out, 1), HETNN_OK) << hetnn_error_message();
    if (round == 0) after_first = allocations();
  }
  EXPECT_EQ(allocations() - after_first, 0);
}

// Where x f32[n,4] is not zero: i64[u,2], u out of the values.
TEST(C, MakesOutputsWhoseSizeComesOutOfValues) {
  program::Program p = one_step(program::write_cpu_code({{{.op = &ops::OpTable::global().get("nonzero"),
                                                           .attrs = {{"count", Dim::symbol("u")}},
                                                           .inputs = {0},
                                                           .outputs = {1},
                                                           .steps = {},
                                                           .variant = "",
                                                           .options = {},
                                                           .node = "places"}}}),
                                "cpu");
  p.symbols.push_back({"u", 0, 4000, 2});
  p.buffers[1].shape = {Dim::symbol("u"), 2};
  p.buffers[1].dtype = DType::i64;
  p.subprograms[0].defines = {"u"};
  const Loaded executable = load(p);
  Arrays a(2);
  a.x = {0, 5, 0, 0, 7, 0, 0, 0};
  a.in.data = a.x.data();
  hetnn_tensor made{};
  made.size = sizeof made;
  ASSERT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &made, 1), HETNN_OK) << hetnn_error_message();
  ASSERT_EQ(made.rank, 2);
  EXPECT_EQ(made.dims[0], 2);
  const auto* places = static_cast<const int64_t*>(made.data);
  EXPECT_EQ(std::vector(places, places + 4), (std::vector<int64_t>{0, 1, 1, 0}));
  hetnn_tensor_free(&made);
  const int64_t dims[2] = {3, 2};
  int64_t room[6];
  hetnn_tensor given = {sizeof given, room, HETNN_I64, 2, dims};
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &given, 1), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "output 'y' is i64[2,2]; room was given for i64[3,2].");
}

TEST(C, RefusesWhatIsNull) {
  const Loaded executable = load(relu());
  Arrays a(1);
  hetnn_executable* none = nullptr;
  EXPECT_EQ(hetnn_load(nullptr, nullptr, &none), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "path is null. Pass a pointer to one.");
  EXPECT_EQ(hetnn_load("nowhere.hetnn", nullptr, nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_load_memory(nullptr, 3, nullptr, &none), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_run(nullptr, nullptr, &a.in, 1, &a.out, 1), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, nullptr, 1, &a.out, 1), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, nullptr, 1), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_input(executable.get(), 0, nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_session_new(nullptr, nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_session_reset(nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_wait(nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_cancel(nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_register_device(nullptr), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_input_count(nullptr), 0U);
  hetnn_free(nullptr);
  hetnn_session_free(nullptr);
  hetnn_tensor_free(nullptr);
  EXPECT_EQ(none, nullptr);
}

// y = relu(x + s), which is what s becomes.
program::Program running_sum() {
  program::Program p = relu();
  p.symbols.clear();
  p.buffers = {{.name = "x", .shape = {4}, .place = Place::input},
               {.name = "s", .shape = {4}, .place = Place::input},
               {.name = "y", .shape = {4}, .place = Place::output},
               {.name = "s.next", .shape = {4}, .place = Place::output}};
  const auto add = [](int32_t output) {
    program::Command command;
    command.op = &ops::OpTable::global().get("add");
    command.inputs = {0, 1};
    command.outputs = {output};
    command.variant = "binary";
    command.node = "add";
    return command;
  };
  p.outputs = {{"y", 2}};
  p.subprograms = {{"part", "cpu", {0, 1}, {2, 3}, {}, program::write_cpu_code({{add(2), add(3)}})}};
  p.weights.append(program::Blob(std::vector<float>{1, 2, 3, 4}));
  p.states = {{"s", 1, 3, 0, 16}};
  return p;
}

TEST(C, ReadsAndWritesStates) {
  const Loaded executable = load(running_sum());
  const auto held = [&](hetnn_executable* of, hetnn_session* session) {
    hetnn_tensor value = {
        .size = sizeof(hetnn_tensor), .data = nullptr, .dtype = HETNN_F32, .rank = 0, .dims = nullptr};
    EXPECT_EQ(hetnn_state_read(of, session, "s", &value), HETNN_OK) << hetnn_error_message();
    EXPECT_EQ(value.rank, 1);
    EXPECT_EQ(value.dims[0], 4);
    const auto* const data = static_cast<const float*>(value.data);
    std::vector<float> out(data, data + 4);
    hetnn_tensor_free(&value);
    return out;
  };
  EXPECT_EQ(held(executable.get(), nullptr), (std::vector<float>{1, 2, 3, 4}));
  std::vector<float> given = {5, 6, 7, 8};
  const int64_t dims[] = {4}, fewer[] = {2};
  hetnn_tensor value = {
      .size = sizeof(hetnn_tensor), .data = given.data(), .dtype = HETNN_F32, .rank = 1, .dims = dims};
  ASSERT_EQ(hetnn_state_write(executable.get(), nullptr, "s", &value), HETNN_OK) << hetnn_error_message();
  hetnn_session* session = nullptr;
  ASSERT_EQ(hetnn_session_new(executable.get(), &session), HETNN_OK);
  EXPECT_EQ(held(executable.get(), session), (std::vector<float>{1, 2, 3, 4}));
  hetnn_session_free(session);

  std::vector<float> x(4, 1), y(4);
  hetnn_tensor in = value, out = value;
  in.data = x.data();
  out.data = y.data();
  ASSERT_EQ(hetnn_run(executable.get(), nullptr, &in, 1, &out, 1), HETNN_OK) << hetnn_error_message();
  EXPECT_EQ(held(executable.get(), nullptr), (std::vector<float>{6, 7, 8, 9}));
  const std::string path = testing::TempDir() + "states.hetnn";
  ASSERT_EQ(hetnn_save(executable.get(), path.c_str()), HETNN_OK) << hetnn_error_message();
  hetnn_executable* again = nullptr;
  ASSERT_EQ(hetnn_load(path.c_str(), nullptr, &again), HETNN_OK) << hetnn_error_message();
  EXPECT_EQ(held(again, nullptr), (std::vector<float>{6, 7, 8, 9}));
  hetnn_free(again);
  std::remove(path.c_str());

  EXPECT_EQ(hetnn_state_write(executable.get(), nullptr, "t", &value), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "there is no state 't'; the model keeps s.");
  value.dims = fewer;
  EXPECT_EQ(hetnn_state_write(executable.get(), nullptr, "s", &value), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "the state 's' is f32[4]; got f32[2].");
  EXPECT_EQ(hetnn_state_read(nullptr, nullptr, "s", &value), HETNN_INVALID_MODEL);
  EXPECT_EQ(hetnn_save(executable.get(), "/nowhere/states.hetnn"), HETNN_INVALID_MODEL);
}

TEST(C, RefusesFilesThatAreNoExecutables) {
  hetnn_executable* none = nullptr;
  EXPECT_EQ(hetnn_load("/nowhere/model.hetnn", nullptr, &none), HETNN_INVALID_MODEL);
  EXPECT_THAT(hetnn_error_message(), HasSubstr("/nowhere/model.hetnn"));
  EXPECT_EQ(hetnn_load_memory("nonsense", 8, nullptr, &none), HETNN_INVALID_MODEL);
  EXPECT_EQ(none, nullptr);
}

TEST(C, RefusesTensorsThatDoNotFit) {
  const Loaded executable = load(relu());
  Arrays a(3);
  const auto refused = [&](auto change, const char* why) {
    Arrays bad(3);
    change(bad);
    EXPECT_EQ(hetnn_run(executable.get(), nullptr, &bad.in, 1, &bad.out, 1), HETNN_INVALID_MODEL) << why;
    EXPECT_THAT(hetnn_error_message(), HasSubstr(why));
  };
  refused([](Arrays& b) { b.in.size = 8; }, "hetnn_tensor.size is 8; it must be sizeof(hetnn_tensor), which is ");
  refused([](Arrays& b) { b.in.size = size_t{1} << 40; }, "hetnn_tensor.size is 1099511627776");
  refused([](Arrays& b) { b.in.rank = -1; }, "input 0: its rank is -1");
  refused([](Arrays& b) { b.in.rank = 1 << 30; }, "input 0: its rank is 1073741824");
  refused([](Arrays& b) { b.in.dims = nullptr; }, "its dims are null");
  refused([](Arrays& b) { b.dims[0] = -3; }, "input 0: no memory holds its dims; dimension 0 is -3");
  refused([](Arrays& b) { b.dims[0] = int64_t{1} << 62; }, "input 0: no memory holds its dims; dimension 0 is ");
  refused([](Arrays& b) { b.in.data = nullptr; }, "input 0: its data is null, and should be 48 bytes.");
  refused([](Arrays& b) { b.in.data = static_cast<char*>(b.in.data) + 1; }, "must begin at a multiple of 4 bytes");
  refused([](Arrays& b) { b.in.dtype = static_cast<hetnn_dtype>(77); }, "input 0: there is no element type 77.");
  refused([](Arrays& b) { b.in.dtype = HETNN_I32; }, "input 'x' must be f32[n,4]; got i32[3,4]. Convert it");
  refused([](Arrays& b) { b.in.dtype = HETNN_U32; }, "input 'x' must be f32[n,4]; got u32[3,4]. Convert it");
  refused([](Arrays& b) { b.in.dtype = HETNN_U2; }, "input 'x' must be f32[n,4]; got u2[3,4]. Convert it");
  refused([](Arrays& b) { b.out.dtype = HETNN_I32; }, "output 'y' is f32[3,4]; room was given for i32[3,4].");
  refused([](Arrays& b) { b.out.data = b.x.data() + 4; }, "out[0] shares memory with input 0.");
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &a.out, 2), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "the model gives 1 output; room was given for 2.");
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, nullptr, 0, &a.out, 1), HETNN_INVALID_MODEL);
  EXPECT_THAT(hetnn_error_message(), HasSubstr("the model takes 1 input (x); got 0."));
}

TEST(C, TakesStructsOfOtherVersions) {
  const Loaded executable = load(relu());
  // A later version's struct whose new members are zero, in an array of them.
  struct Later {
    hetnn_tensor known;
    int64_t added;
  } in{}, out{};
  Arrays a(2);
  in.known = a.in, out.known = a.out;
  in.known.size = sizeof in, out.known.size = sizeof out;
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &in.known, 1, &out.known, 1), HETNN_OK) << hetnn_error_message();
  EXPECT_EQ(a.y, a.expected());
  in.added = 1;
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &in.known, 1, &out.known, 1), HETNN_INVALID_MODEL);
  EXPECT_THAT(hetnn_error_message(), StartsWith("hetnn_tensor has members set that version "));
  // The first version's options had no more than these.
  hetnn_options options{};
  options.size = offsetof(hetnn_options, refuse_when_full) + sizeof options.refuse_when_full;
  options.threads = 1;
  load(relu(), &options);
  options.size = 3;
  hetnn_executable* none = nullptr;
  const program::Image image = program::pack(relu());
  EXPECT_EQ(hetnn_load_memory(image.data(), image.size(), &options, &none), HETNN_INVALID_MODEL);
}

// A device as a vendor would write it: it copies, after the time that its code says, on a thread of its own.
struct Slow {
  int64_t naps_ms = 0;
  const void* from = nullptr;
  size_t bytes = 0;
  std::vector<char> held;
  std::thread thread;
};
std::atomic<int> slow_loaded{0}, slow_open{0};

hetnn_status slow_load(void*, const hetnn_code* code, void** loaded) {
  if (code->version != 1) return hetnn_fail(HETNN_INVALID_MODEL, "slow: only version 1 is known");
  *loaded = new int64_t(std::stoll(std::string(static_cast<const char*>(code->bytes), code->byte_count)));
  ++slow_loaded;
  return HETNN_OK;
}
void slow_unload(void* loaded) {
  delete static_cast<int64_t*>(loaded);
  --slow_loaded;
}
hetnn_status slow_open_visit(void* loaded, const hetnn_port* inputs, const hetnn_port*, void** visit) {
  auto* slow = new Slow;
  slow->naps_ms = *static_cast<int64_t*>(loaded);
  slow->bytes = static_cast<size_t>(inputs[0].dims[0] * inputs[0].dims[1]) * sizeof(float);
  *visit = slow;
  ++slow_open;
  return HETNN_OK;
}
void slow_close(void* visit) {
  auto* slow = static_cast<Slow*>(visit);
  if (slow->thread.joinable()) slow->thread.join();
  delete slow;
  --slow_open;
}
hetnn_status slow_upload(void* visit, const hetnn_tensor* inputs) {
  auto* slow = static_cast<Slow*>(visit);
  const auto* from = static_cast<const char*>(inputs[0].data);
  slow->held.assign(from, from + slow->bytes);
  return HETNN_OK;
}
hetnn_status slow_start(void* visit, hetnn_event* done) {
  auto* slow = static_cast<Slow*>(visit);
  if (slow->thread.joinable()) slow->thread.join();
  slow->thread = std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(slow->naps_ms));
    if (slow->naps_ms == 13) {
      hetnn_event_set(done, HETNN_UNAVAILABLE, "slow: the device is gone");
    } else {
      hetnn_event_set(done, HETNN_OK, nullptr);
    }
  });
  return HETNN_OK;
}
hetnn_status slow_download(void* visit, const hetnn_tensor* outputs) {
  auto* slow = static_cast<Slow*>(visit);
  std::memcpy(outputs[0].data, slow->held.data(), slow->bytes);
  return HETNN_OK;
}

hetnn_device slow_device() {
  return {sizeof(hetnn_device), "slow",      nullptr,    slow_load,     slow_unload, slow_open_visit,
          slow_close,           slow_upload, slow_start, slow_download, nullptr,     0};
}

Loaded load_slow(const char* naps_ms, const hetnn_options* options = nullptr) {
  const hetnn_device device = slow_device();
  EXPECT_EQ(hetnn_register_device(&device), HETNN_OK) << hetnn_error_message();
  return load(one_step(program::Code::of_text("slow", 1, naps_ms), "slow0"), options);
}

TEST(CDevice, RunsAndIsGivenBack) {
  {
    const Loaded executable = load_slow("0");
    EXPECT_EQ(slow_loaded, 1);
    for (const int64_t n : {3, 5, 3}) {
      Arrays a(n);
      ASSERT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &a.out, 1), HETNN_OK) << hetnn_error_message();
      EXPECT_EQ(a.y, a.x);
    }
  }
  EXPECT_EQ(slow_loaded, 0);
  EXPECT_EQ(slow_open, 0);
}

TEST(CDevice, ItsFailuresReachTheCaller) {
  const Loaded executable = load_slow("13");
  Arrays a(1);
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &a.in, 1, &a.out, 1), HETNN_UNAVAILABLE);
  EXPECT_STREQ(hetnn_error_message(), "slow: the device is gone");
  hetnn_executable* none = nullptr;
  const program::Image image = program::pack(one_step(program::Code::of_text("slow", 2, "1"), "slow0"));
  EXPECT_EQ(hetnn_load_memory(image.data(), image.size(), nullptr, &none), HETNN_INVALID_MODEL);
  EXPECT_STREQ(hetnn_error_message(), "slow: only version 1 is known");
}

TEST(CDevice, MustBeWhole) {
  hetnn_device device = slow_device();
  device.start = nullptr;
  EXPECT_EQ(hetnn_register_device(&device), HETNN_INVALID_MODEL);
  EXPECT_THAT(hetnn_error_message(), StartsWith("hetnn_device: only `times` may be null."));
  device = slow_device();
  device.kind = nullptr;
  EXPECT_EQ(hetnn_register_device(&device), HETNN_INVALID_MODEL);
}

TEST(CRuns, GoOnInTheBackground) {
  const Loaded executable = load_slow("20");
  Arrays a(2), b(3);
  hetnn_run_handle *first = nullptr, *second = nullptr;
  std::atomic<int> called{0};
  hetnn_run_options options{};
  options.size = sizeof options;
  options.user = &called;
  options.callback = [](void* user, hetnn_status status, const char* message) {
    if (status == HETNN_OK && std::string(message).empty()) ++*static_cast<std::atomic<int>*>(user);
  };
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &a.in, 1, &a.out, 1, &options, &first), HETNN_OK);
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &b.in, 1, &b.out, 1, nullptr, &second), HETNN_OK);
  EXPECT_EQ(hetnn_wait(first), HETNN_OK);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(hetnn_wait(second), HETNN_OK);
  EXPECT_EQ(a.y, a.x);
  EXPECT_EQ(b.y, b.x);
}

TEST(CRuns, EndAtTheirDeadline) {
  const Loaded executable = load_slow("300");
  Arrays a(2), b(2);
  hetnn_run_handle *first = nullptr, *second = nullptr;
  hetnn_run_options options{};
  options.size = sizeof options;
  options.timeout_us = 20000;
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &a.in, 1, &a.out, 1, nullptr, &first), HETNN_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the first has the device
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &b.in, 1, &b.out, 1, &options, &second), HETNN_OK);
  EXPECT_EQ(hetnn_wait(second), HETNN_UNAVAILABLE);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_THAT(hetnn_error_message(), StartsWith("the run's deadline passed before it ended."));
  EXPECT_EQ(hetnn_wait(first), HETNN_OK);
}

TEST(CRuns, AreCancelledWhileTheyWait) {
  const Loaded executable = load_slow("300");
  Arrays a(2), b(2);
  hetnn_run_handle *first = nullptr, *second = nullptr;
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &a.in, 1, &a.out, 1, nullptr, &first), HETNN_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &b.in, 1, &b.out, 1, nullptr, &second), HETNN_OK);
  ASSERT_EQ(hetnn_cancel(second), HETNN_OK);
  EXPECT_EQ(hetnn_wait(second), HETNN_CANCELLED);
  EXPECT_STREQ(hetnn_error_message(), "the run was asked to stop.");
  EXPECT_EQ(hetnn_wait(first), HETNN_OK);
  EXPECT_EQ(a.y, a.x);
}

TEST(CRuns, AreBounded) {
  hetnn_options options{};
  options.size = sizeof options;
  options.max_concurrent_runs = 1;
  options.refuse_when_full = 1;
  const Loaded executable = load_slow("200", &options);
  Arrays a(2), b(2);
  hetnn_run_handle* first = nullptr;
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &a.in, 1, &a.out, 1, nullptr, &first), HETNN_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &b.in, 1, &b.out, 1), HETNN_UNAVAILABLE);
  EXPECT_THAT(hetnn_error_message(), StartsWith("all 1 runs that the executable takes at once are under way."));
  EXPECT_EQ(hetnn_wait(first), HETNN_OK);
  EXPECT_EQ(hetnn_run(executable.get(), nullptr, &b.in, 1, &b.out, 1), HETNN_OK);
}

int status_in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(CFork, TheChildRunsOnWhatTheParentLoaded) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer lets no child of a program with threads start any";
#endif
  hetnn_options options{};
  options.size = sizeof options;
  options.max_concurrent_runs = 1;
  const Loaded executable = load_slow("100", &options);
  Arrays a(2);
  hetnn_run_handle* handle = nullptr;
  ASSERT_EQ(hetnn_run_async(executable.get(), nullptr, &a.in, 1, &a.out, 1, nullptr, &handle), HETNN_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The parent's run holds the device and the only place; neither is the child's.
  EXPECT_EQ(status_in_child([&] {
              Arrays b(2);
              if (hetnn_wait(handle) != HETNN_UNAVAILABLE) return false;
              hetnn_run_handle* own = nullptr;
              return hetnn_run(executable.get(), nullptr, &b.in, 1, &b.out, 1) == HETNN_OK && b.y == b.x &&
                     hetnn_run_async(executable.get(), nullptr, &b.in, 1, &b.out, 1, nullptr, &own) == HETNN_OK &&
                     hetnn_wait(own) == HETNN_OK;
            }),
            0);
  EXPECT_EQ(hetnn_wait(handle), HETNN_OK);
  EXPECT_EQ(a.y, a.x);
}

}  // namespace
}  // namespace hetnn
