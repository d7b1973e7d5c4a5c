// Reference runs of graphs for the tests of passes.
#include "meaning.h"

#include <cmath>
#include <limits>
#include <random>

#include "hetnn/ir/interpret.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::passes {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Inputs seeded(const ir::Graph& graph, uint32_t seed, const std::vector<float>& unusual) {
  std::mt19937 random(seed);
  return make_inputs(graph, [&] {
    const uint32_t bits = random();
    const float plain = static_cast<float>(bits >> 8) / static_cast<float>(1 << 24) * 8 - 4;
    if (unusual.empty() || bits % 3 != 0) return plain;
    return unusual[(bits / 3) % unusual.size()];
  });
}

const std::vector<float> kFinite = {0.0F, -0.0F, 1e-40F, -1e-40F, 1e-20F, -1e-20F, 1.0F, -1.0F, 6.0F, 3e3F, -3e3F};

}  // namespace

std::vector<Tensor> run(const ir::Graph& graph, const Inputs& inputs) {
  std::vector<Tensor> ordered;
  for (const ir::Value* input : graph.inputs()) ordered.push_back(inputs.at(input->name()));
  return ir::interpret(graph, ordered);
}

Inputs make_inputs(const ir::Graph& graph, const std::function<float()>& next) {
  Inputs out;
  for (const ir::Value* input : graph.inputs()) {
    const std::vector<int64_t> shape = evaluate(input->shape(), graph.hints());
    const bool real = ops::is_real(input->type()) && input->dtype() != DType::f64;
    std::byte* data = nullptr;
    Tensor tensor = Tensor::zeros(real ? DType::f32 : input->dtype(), shape, &data);
    for (int64_t k = 0; real && k < tensor.elems(); ++k) reinterpret_cast<float*>(data)[k] = next();
    out.emplace(input->name(), ops::narrow(tensor, input->type()));
  }
  return out;
}

Inputs random_inputs(const ir::Graph& graph, uint32_t seed) { return seeded(graph, seed, {}); }
Inputs edge_inputs(const ir::Graph& graph, uint32_t seed) { return seeded(graph, seed, kFinite); }
Inputs special_inputs(const ir::Graph& graph, uint32_t seed) {
  std::vector<float> unusual = kFinite;
  unusual.insert(unusual.end(), {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()});
  return seeded(graph, seed, unusual);
}

double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return kInf;
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].dtype() != b[k].dtype() || a[k].shape() != b[k].shape()) return kInf;
    if (a[k].dtype() != DType::f32) {
      if (!(a[k] == b[k])) return kInf;
      continue;
    }
    const auto x = a[k].values<float>(), y = b[k].values<float>();
    double largest = 0, distance = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;
      if (x[i] == y[i]) {
        if (std::isfinite(x[i])) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
        continue;
      }
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return kInf;
      largest = std::max(largest, std::abs(static_cast<double>(x[i])));
      distance = std::max(distance, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
    if (distance > 0) worst = std::max(worst, distance / std::max(largest, 1e-30));
  }
  return worst;
}

}  // namespace hetnn::passes
