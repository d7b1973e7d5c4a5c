// Reads the code of NPUs and follows its words.
#include "hetnn/runtime/device_layers.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "hetnn/npu/spec.h"
#include "hetnn/program/validate.h"

namespace hetnn::runtime {

std::vector<DeviceLayers> device_layers(const program::Program& program, const Bindings& bindings) {
  // Of sizes that depend on values there is no code.
  const std::set<std::string> symbols = program::free_symbols(program);
  Bindings given = bindings;
  std::erase_if(given, [&](const auto& binding) { return !symbols.contains(binding.first); });
  std::vector<DeviceLayers> out;
  for (size_t k = 0; k < program.subprograms.size(); ++k) {
    const program::Subprogram& subprogram = program.subprograms[k];
    if (subprogram.code.kind != "npu") continue;
    npu::Code code = npu::read_code(subprogram.code.as_text(npu::kCodeVersion, subprogram.name), subprogram.name);
    const auto at = std::ranges::find_if(code.variants, [&](const npu::Variant& v) { return v.bindings == given; });
    if (at == code.variants.end()) continue;
    const npu::Spec spec = npu::parse_spec(code.spec_json, subprogram.device);
    std::vector<uint64_t> words(static_cast<size_t>(at->word_count));
    const auto bytes = program.weights.at(at->words_offset_bytes, at->word_count * 8);
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    npu::LayerTimes times = npu::time_layers(spec, words, *at);
    out.push_back({k, spec.clock_hz, spec.launch_us, std::move(*at), std::move(times)});
  }
  return out;
}

}  // namespace hetnn::runtime
