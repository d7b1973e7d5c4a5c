// Every device against the reference: each operator's samples, compiled, packed, unpacked and run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "hetnn/base/error.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/interpret.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"
#include "hetnn/npu/spec.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/runtime/executable.h"
#include "runtime/count_allocations.h"

namespace hetnn {
namespace {

constexpr int64_t kSize = 8;  // of every symbol

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A kind of device, with a data sheet where the kind needs one.
struct DeviceCase {
  std::string kind;
  std::string sheet;  // the name of its file, or empty
};

std::filesystem::path sheets() { return std::filesystem::path(HETNN_SOURCE_DIR) / "python/hetnn/targets"; }

TargetSpec target_of(const DeviceCase& device) {
  const std::string spec = device.sheet.empty() ? "" : read_file(sheets() / (device.sheet + ".json"));
  const std::string own = R"({"name": ")" + (device.sheet.empty() ? device.kind : device.sheet) + R"(", "kind": ")" +
                          device.kind + '"' + (spec.empty() ? "" : R"(, "spec": )" + spec) + "}";
  // A kind without a sheet takes every operator that it knows; beside others stands the general processor.
  return parse_target(device.sheet.empty()
                          ? R"({"name": "one", "devices": [)" + own + "]}"
                          : R"({"name": "both", "devices": [{"name": "cpu", "kind": "cpu"}, )" + own + "]}");
}

// Every kind there is: by itself, or where it needs a data sheet with those of the package that it reads.
std::vector<DeviceCase> all_devices() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(sheets())) names.push_back(file.path().stem());
  std::sort(names.begin(), names.end());
  const auto makes = [](const DeviceCase& device) {
    try {
      backends::make_backend(target_of(device).devices.back());
      return true;
    } catch (const InvalidModel&) {
      return false;
    }
  };
  std::vector<DeviceCase> out;
  for (const std::string& kind : backends::backend_kinds()) {
    if (makes({kind, ""})) {
      out.push_back({kind, ""});
      continue;
    }
    const size_t before = out.size();
    for (const std::string& name : names) {
      if (makes({kind, name})) out.push_back({kind, name});
    }
    HETNN_ASSERT(out.size() > before, kind, " reads no data sheet of the package");
  }
  return out;
}

Tensor random_tensor(DType dtype, const std::vector<int64_t>& shape, std::mt19937& random) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(dtype, shape, &data);
  std::normal_distribution<double> normal(0, 1);
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t k = 0; k < out.elems(); ++k) {
      const double draw = normal(random);
      // Integers of both signs, but not 0: division by it is refused.
      const double integer = std::copysign(std::ceil(std::abs(3 * draw)), draw);
      reinterpret_cast<T*>(data)[k] = static_cast<T>(is_float(dtype)           ? draw
                                                     : dtype == DType::boolean ? draw > 0
                                                     : std::is_unsigned_v<T>   ? std::abs(integer)
                                                                               : integer);
    }
  });
  return out;
}

// The sample as it is written, or with its reals as f16 or as quantized integers.
enum class Form : uint8_t { as_written, f16, i8 };
constexpr std::string_view kForms[] = {"", "_f16", "_i8"};

constexpr double kActivationScale = 0.03, kWeightScale = 0.02;

// f32 as the form has it. Weights have a scale for each index of their first axis, biases that of the sums.
ops::Type type_of(const ops::Type& written, Form form, std::string_view role) {
  if (form == Form::as_written || written.dtype != DType::f32) return written;
  if (form == Form::f16) return {DType::f16, written.shape};
  if (role == "weight" && is_static(written.shape)) {
    ops::Quant quant;
    for (int64_t k = 0; k < written.shape[0].value(); ++k)
      quant.scales.push_back(kWeightScale * (1 + 0.25 * static_cast<double>(k % 4)));
    return {DType::i8, written.shape, quant};
  }
  if (role == "bias") return {DType::i32, written.shape, ops::Quant{{kActivationScale * kWeightScale}, {0}}};
  return {DType::i8, written.shape, ops::Quant{{kActivationScale}, {-5}}};
}

Tensor random_of(const ops::Type& type, const std::vector<int64_t>& shape, std::mt19937& random) {
  return ops::narrow(random_tensor(ops::is_narrow(type) ? DType::f32 : type.dtype, shape, random), type);
}

// The sample's node with its first input as the graph's input, and constants of fixed shape for the others. Throws
// InvalidModel where the operator does not take the form.
ir::Graph graph_of(std::string_view source, std::mt19937& random, Form form = Form::as_written) {
  const ir::Graph sample = ir::parse_sample(source);
  const ir::Node* node = sample.outputs()[0]->producer();
  if (form != Form::as_written && node->op().has(ops::Trait::conversion)) throw InvalidModel("a form of its own");
  ir::Graph graph("sample");
  graph.symbols = sample.symbols;
  ir::Rewriter rewriter(graph);
  std::vector<ir::Value*> inputs;
  for (size_t k = 0; k < node->inputs().size(); ++k) {
    const ir::Value* input = node->input(k);
    if (!input) {
      inputs.push_back(nullptr);
      continue;
    }
    const ops::Type type =
        type_of(input->type(), form, node->op().inputs[std::min(k, node->op().inputs.size() - 1)].name);
    if (input->producer()) {
      inputs.push_back(rewriter.constant(ops::narrow(input->producer()->tensor("value"), type), {}, type.quant));
    } else if (inputs.empty() || !is_static(input->shape())) {
      inputs.push_back(rewriter.add_input(input->name(), type));
    } else {
      inputs.push_back(rewriter.constant(random_of(type, values(input->shape()), random), {}, type.quant));
    }
  }
  ops::Attrs attrs = node->attrs();
  const auto quantized = std::find_if(inputs.begin(), inputs.end(), [](auto* v) { return v && v->type().quant; });
  if (quantized != inputs.end() && node->output()->dtype() == DType::f32 && !node->op().has(ops::Trait::movement)) {
    // Operators that keep the order of values, and the engines' pooling, keep the scale.
    const bool keeps = node->inputs().size() == 1 && node->op().tolerance == 0;
    attrs.merge(ops::quant_attrs(keeps ? *(*quantized)->type().quant : ops::Quant{{0.041}, {7}}));
  }
  for (ir::Value* output : rewriter.create(node->op().name, inputs, attrs)->outputs()) rewriter.add_output(output);
  for (Symbol& symbol : graph.symbols) symbol.hint = kSize;
  return graph;
}

double largest_difference(const Tensor& got, const Tensor& want) {
  if (is_stored(want.dtype())) return got == want ? 0 : INFINITY;
  double difference = 0, size = 0;
  visit_dtype(want.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t k = 0; k < want.values<T>().size(); ++k) {
      const auto g = static_cast<double>(got.values<T>()[k]), w = static_cast<double>(want.values<T>()[k]);
      if (std::isnan(w) || std::isinf(w)) {
        difference = (std::isnan(g) && std::isnan(w)) || g == w ? difference : INFINITY;
      } else {
        difference = std::max(difference, std::abs(g - w));
        size = std::max(size, std::abs(w));
      }
    }
  });
  return size > 0 ? difference / size : difference;
}

// Of quantized integers.
int64_t most_steps(const Tensor& got, const Tensor& want) {
  int64_t most = 0;
  visit_dtype(want.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t k = 0; k < want.values<T>().size(); ++k) {
      most = std::max(most,
                      std::abs(static_cast<int64_t>(got.values<T>()[k]) - static_cast<int64_t>(want.values<T>()[k])));
    }
  });
  return most;
}

// The memory of outputs that an earlier run made.
class Again final : public ops::Results {
 public:
  explicit Again(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  std::byte* allocate(size_t index, DType, std::span<const int64_t>) override {
    return const_cast<std::byte*>(tensors_[index].data());
  }

 private:
  const std::vector<Tensor>& tensors_;
};

std::vector<Tensor> run(const Compilation& compilation, const std::vector<Tensor>& inputs, int threads) {
  auto image = std::make_shared<const program::Image>(compilation.image());
  runtime::Executable executable({image, *image}, threads);
  runtime::RunTimes times;
  executable.run(inputs, {.times = &times, .time_commands = true});
  std::vector<Tensor> out = executable.run(inputs);  // a second run reuses the context
  // Kernels allocate nothing; meanings may, and so may bodies, which run as models of their own.
  if (!times.commands.empty() && std::ranges::none_of(times.commands, [](const runtime::CommandTime& command) {
        return command.kernel.starts_with("meaning of") || command.kernel == "body";
      })) {
    const std::vector<ops::View> views(inputs.begin(), inputs.end());
    Again outputs(out);
    executable.run(views, outputs);
    const int64_t before = allocations();
    executable.run(views, outputs);
    EXPECT_EQ(allocations() - before, 0);
  }
  return out;
}

struct Case {
  DeviceCase device;
  const ops::OpDef* op;
  std::string_view source;
  Form form;
};

// Whether the operator's types allow the form, and the sample has any reals to change.
bool takes(std::string_view source, Form form) {
  std::mt19937 random(1);
  try {
    const ir::Graph graph = graph_of(source, random, form);
    return form == Form::as_written || ops::has_narrow(graph.outputs()[0]->producer()->call());
  } catch (const InvalidModel&) {
    return false;
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const DeviceCase& device : all_devices()) {
    for (const ops::OpDef* op : ops::OpTable::global().all()) {
      for (std::string_view source : op->samples) {
        for (Form form : {Form::as_written, Form::f16, Form::i8}) {
          if (takes(source, form)) out.push_back({device, op, source, form});
        }
      }
    }
  }
  return out;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, EqualsTheReference) {
  std::mt19937 random(11);
  const ir::Graph graph = graph_of(GetParam().source, random, GetParam().form);
  std::vector<Tensor> inputs;
  for (const ir::Value* input : graph.inputs())
    inputs.push_back(random_of(input->type(), evaluate(input->shape(), graph.hints()), random));
  const std::vector<Tensor> want = ir::interpret(graph, inputs);
  CompileOptions options;
  options.strategy = "take-all";
  std::unique_ptr<Compilation> compilation;
  try {
    compilation = Compilation::make(graph.clone(), target_of(GetParam().device), options);
  } catch (const Unsupported& error) {
    ADD_FAILURE() << "every device takes every operator, or leaves it to the general processor: " << error.what();
    return;
  }
  for (int threads : {1, 2}) {
    std::vector<Tensor> got;
    try {
      got = run(*compilation, inputs, threads);
    } catch (const Unsupported& error) {
      // A device for planning alone must say so.
      EXPECT_THAT(error.what(), testing::HasSubstr("plans and runs nothing"));
      return;
    }
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < want.size(); ++k) {
      const ops::Type& type = graph.outputs()[k]->type();
      if (type.quant) {
        EXPECT_LE(most_steps(got[k], want[k]), 1);
      } else {
        const double rounding = type.dtype == DType::f16 ? 0x1p-10 : type.dtype == DType::bf16 ? 0x1p-7 : 2e-6;
        EXPECT_LE(largest_difference(ops::widen(got[k], type), ops::widen(want[k], type)),
                  std::max(GetParam().op->tolerance, rounding));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, Conformance, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<Case>& sample) {
                           std::string device = sample.param.device.kind + "_" + sample.param.device.sheet;
                           std::replace(device.begin(), device.end(), '-', '_');
                           return device + (device.back() == '_' ? "" : "_") + std::string(sample.param.op->name) +
                                  std::string(kForms[static_cast<size_t>(sample.param.form)]) + "_" +
                                  std::to_string(sample.index);
                         });

TEST(Compile, ADeviceOfAKindOfItsOwnTellsItsTime) {
  std::mt19937 random(5);
  const ir::Graph graph = graph_of("relu(f32[3,5])", random);
  const auto compilation = Compilation::make(graph.clone(), target_of({"dsp", ""}), {});
  const auto image = std::make_shared<const program::Image>(compilation->image());
  runtime::Executable executable({image, *image}, 1);
  runtime::RunTimes times;
  const Tensor x = random_tensor(DType::f32, {3, 5}, random);
  const std::vector<Tensor> y = executable.run(std::vector<Tensor>{x}, {.times = &times});
  EXPECT_EQ(y.at(0).shape(), x.shape());
  ASSERT_EQ(times.subprograms.size(), 1U);
  EXPECT_EQ(times.subprograms[0].device, "dsp");
  EXPECT_EQ(times.subprograms[0].cycles, 15);
  EXPECT_DOUBLE_EQ(times.subprograms[0].simulated_us, 0.15);
}

TEST(Compile, AnUnseenSizeTakesTheCompilerOrFallsBack) {
  std::mt19937 random(5);
  const ir::Graph graph = graph_of("conv2d(f32[1,2,h,8], f32[5,2,1,1], f32[5])", random);
  CompileOptions options;
  options.strategy = "take-all";
  const auto compilation = Compilation::make(graph.clone(), target_of({"npu", "relu-only"}), options);
  auto image = std::make_shared<const program::Image>(compilation->image());
  runtime::Executable executable({image, *image}, 1);
  const Tensor x = random_tensor(DType::f32, {1, 2, 6, 8}, random);
  const Tensor want = ir::interpret(graph, std::vector<Tensor>{x})[0];
  // Without a compiler the general processor computes it.
  runtime::Executable alone({image, *image}, 1);
  std::string notice;
  alone.set_notice([&](const std::string& said) { notice = said; });
  EXPECT_LE(largest_difference(alone.run(std::vector{x})[0], want), 1e-6);
  EXPECT_THAT(notice, testing::AllOf(testing::HasSubstr("{h = 6}"), testing::HasSubstr("{h = 8}")));
  executable.set_specializer([&](const Bindings& wanted, int32_t, int64_t weights_bytes) {
    std::string refused = compilation->add_variant(wanted);
    return runtime::Executable::Specialized{compilation->image(weights_bytes), std::move(refused)};
  });
  runtime::RunTimes times;
  EXPECT_LE(largest_difference(executable.run(std::vector{x}, {.times = &times})[0], want), 1e-6);
  EXPECT_FALSE(times.subprograms.at(0).fallback);
}

int64_t live_bytes() {
  const auto heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}

TEST(Compile, AFurtherSizeCopiesNoConstants) {
  std::mt19937 random(5);
  const ir::Graph graph = graph_of("linear(f32[n,1024], f32[1024,1024], f32[1024])", random);
  constexpr int64_t kWeightBytes = 1024 * 1024 * 4;
  CompileOptions options;
  options.strategy = "take-all";
  const auto compilation = Compilation::make(graph.clone(), target_of({"npu", "relu-only"}), options);
  const auto image = std::make_shared<const program::Image>(compilation->image());
  const auto image_bytes = static_cast<int64_t>(image->size());
  // As the accelerator reads them, and as the general processor does where it falls back.
  EXPECT_LT(image_bytes, 2 * kWeightBytes + 100'000);
  runtime::Executable executable({image, *image}, 1);
  const std::byte* weights = executable.program()->weights.at(0, kWeightBytes).data();
  executable.set_specializer([&](const Bindings& wanted, int32_t, int64_t weights_bytes) {
    std::string refused = compilation->add_variant(wanted);
    return runtime::Executable::Specialized{compilation->image(weights_bytes), std::move(refused)};
  });
  const int64_t before = live_bytes();
  for (const int64_t n : {1, 2, 3, 4, 5, 6}) {
    const Tensor x = random_tensor(DType::f32, {n, 1024}, random);
    const Tensor y = executable.run(std::vector{x})[0];
    EXPECT_LE(largest_difference(y, ir::interpret(graph, std::vector<Tensor>{x})[0]), 1e-5);
  }
  EXPECT_EQ(executable.program()->weights.at(0, kWeightBytes).data(), weights);
  // Each size that is ready to run has a scratchpad with its shadow; all else is less than one copy.
  const auto spec = npu::parse_spec(read_file(sheets() / "relu-only.json"), "relu-only");
  EXPECT_LT(live_bytes() - before, 6 * 2 * spec.sram[0].bytes + kWeightBytes);
  EXPECT_LT(static_cast<int64_t>(executable.image().size()) - image_bytes, 100'000);
  EXPECT_EQ(executable.image(), compilation->image());
}

}  // namespace
}  // namespace hetnn
