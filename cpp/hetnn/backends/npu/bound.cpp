// What no schedule can be faster than.
#include "hetnn/backends/npu/bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hetnn::backends::scheduling {

using npu::Engine;
using npu::Spec;

namespace {

// Bytes of an input that a layer needs: windows that lie apart leave elements between them out.
double needed_bytes(const Network& network, const Layer& layer, const ir::Value& input) {
  const Map map = network.map(input);
  double out = static_cast<double>(map.elems() * dtype_bytes(input.dtype()));
  if ((layer.form != Form::product && layer.form != Form::pool) || &input != layer.inputs[0]) return out;
  const auto share = [](const ops::WindowAxis& axis, int64_t count, int64_t size) {
    return std::min(1.0, static_cast<double>(count * axis.kernel) / static_cast<double>(size));
  };
  return out * share(layer.window[0], layer.out.h, layer.in.h) * share(layer.window[1], layer.out.w, layer.in.w);
}

}  // namespace

int64_t lower_bound_cycles(const Spec& spec, const Network& network) {
  double mac = 0, vector = 0, constants = 0, read = 0, written = 0;
  for (const Layer& layer : network.layers()) {
    const double cycles = static_cast<double>(layer.cycles(spec, layer.out.h)) *
                          static_cast<double>(layer.form == Form::matrices ? layer.product.batch : layer.out.n);
    (layer.engine() == Engine::mac ? mac : vector) += layer.form == Form::rearrange ? 0 : cycles;
    constants += static_cast<double>(layer.parameters().bytes);
  }
  std::vector<double> needed(network.storages().size());
  for (const Layer& layer : network.layers()) {
    for (const ir::Value* input : layer.inputs) {
      double& most = needed[network.frame(*input).storage];
      most = std::max(most, needed_bytes(network, layer, *input));
    }
  }
  for (size_t k = 0; k < needed.size(); ++k) {
    const Storage& storage = network.storages()[k];
    if (storage.is_constant)
      constants += needed[k];
    else if (storage.is_port)
      (network.is_written(*storage.value) ? written : read) +=
          network.is_written(*storage.value) ? static_cast<double>(storage.bytes) : needed[k];
  }
  const double maps = read / spec.dram.rate() + written / spec.dram.rate(/*writes=*/true),
               kept = constants / spec.constants().rate();
  const double moved = spec.flash ? std::max(maps, kept) : maps + kept;
  return static_cast<int64_t>(std::ceil(std::max({mac, vector, moved})));
}

}  // namespace hetnn::backends::scheduling
