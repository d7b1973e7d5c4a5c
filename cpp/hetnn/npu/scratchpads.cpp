// Where in several scratchpads what is of one kind lies, of what the engines reach.
#include <algorithm>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::npu {
namespace {

constexpr std::string_view kContentNames[kContents] = {"maps", "weights", "sums"};

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += text(out.empty() ? "'" : ", '", name, "'");
  return out;
}

// Scratchpads that all steps of a path reach.
class Path {
 public:
  explicit Path(const Spec& spec, std::string_view where) : spec_(spec), where_(where) {
    for (size_t k = 0; k < spec.sram.size(); ++k) left_.push_back(k);
  }

  Path& step(Engine engine, Operand operand, std::string_view does) {
    const Reach& reach = spec_.reach_of(engine);
    const std::vector<std::string>& names = reach[static_cast<size_t>(operand)];
    if (names.empty()) return *this;
    std::erase_if(left_, [&](size_t k) { return !Spec::reaches(reach, operand, spec_.sram[k]); });
    const std::string now = text("'", engine_name(engine), "' ", does, " ", listed(names));
    if (left_.empty())
      throw InvalidModel(text(where_, ": there is no path ", operand == Operand::stores ? "to" : "from",
                              " the memory 'dram' ", operand == Operand::stores ? "from" : "to", " the engine '",
                              engine_name(engine), "': ", said_, now,
                              ". A scratchpad is expected that all of them name in their 'memories'."));
    said_ += now + ", ";
    return *this;
  }

  size_t largest() const {
    return *std::max_element(left_.begin(), left_.end(),
                             [&](size_t a, size_t b) { return spec_.sram[a].bytes < spec_.sram[b].bytes; });
  }

 private:
  const Spec& spec_;
  const std::string_view where_;
  std::vector<size_t> left_;
  std::string said_;  // of the steps that name scratchpads
};

void check(const Spec& spec, std::string_view where) {
  const auto demand = [&](bool holds, const std::string& path, const std::string& message) {
    if (!holds) throw InvalidModel(text(where, ": ", path, " ", message, "."));
  };
  demand(spec.sram.size() <= kMostScratchpads, "sram",
         text("holds ", spec.sram.size(), " scratchpads; at most ", kMostScratchpads,
              " are expected. What lies behind them is 'dram', and 'flash' for constants"));
  std::vector<std::string_view> names;
  int64_t left = int64_t{1} << 32;
  for (size_t k = 0; k < spec.sram.size(); ++k) {
    const Memory& memory = spec.sram[k];
    const std::string path = text("sram[", k, "]");
    demand(memory.bytes <= left, path + ".bytes",
           text("must be at most 2^32 with those before, the reach of an address; found ", memory.bytes));
    left -= memory.bytes;
    demand(spec.sram.size() == 1 || !memory.name.empty(), path, "lacks 'name', by which engines say what they reach");
    demand(std::find(names.begin(), names.end(), memory.name) == names.end(), path + ".name",
           text("is '", memory.name, "', as that of another scratchpad"));
    names.push_back(memory.name);
  }
  const auto demand_name = [&](const std::string& name, const std::string& path) {
    demand(std::find(names.begin(), names.end(), name) != names.end(), path,
           text("names '", name, "', which is no scratchpad of 'sram'"));
  };
  for (const Engine engine : {Engine::dma, Engine::mac, Engine::vector}) {
    for (const auto& listed : spec.reach_of(engine)) {
      for (const std::string& name : listed) demand_name(name, text(engine_name(engine), ".memories"));
    }
  }
  for (const auto& [name, figure] : spec.energy_pj.sram_byte) {
    if (!name.empty()) demand_name(name, "energy_pj.sram_byte");
  }
}

}  // namespace

int64_t Spec::base_of(size_t memory) const {
  int64_t out = 0;
  for (size_t k = 0; k < memory; ++k)
    out += k + 1 < sram.size() ? (sram[k].bytes + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment
                               : sram[k].bytes;
  return out;
}

size_t Spec::memory_at(int64_t address) const {
  size_t out = sram.size() - 1;
  while (out > 0 && address < base_of(out)) --out;
  return out;
}

int64_t Spec::taken(const ContentBytes& bytes) const {
  const size_t maps = memory_of(Content::maps);
  int64_t out = 0;
  for (size_t k = 0; k < sram.size(); ++k) {
    int64_t here = 0;
    for (size_t content = 0; content < kContents; ++content) here += homes[content] == k ? bytes[content] : 0;
    if (k == maps)
      out = here;
    else if (here > sram[k].bytes)
      return std::numeric_limits<int64_t>::max();
  }
  return out;
}

bool Spec::reaches(const Reach& reach, Operand operand, const Memory& memory) {
  const std::vector<std::string>& names = reach[static_cast<size_t>(operand)];
  return names.empty() || std::find(names.begin(), names.end(), memory.name) != names.end();
}

const Reach& Spec::reach_of(Engine engine) const {
  return engine == Engine::mac ? mac.reach : engine == Engine::vector ? vector.reach : dma.reach;
}

void Spec::find_homes(std::string_view where) {
  check(*this, where);
  const auto home = [&](Content content, const Path& path) {
    homes[static_cast<size_t>(content)] = static_cast<uint8_t>(path.largest());
  };
  home(Content::maps, Path(*this, where)
                          .step(Engine::dma, Operand::loads, "loads into")
                          .step(Engine::mac, Operand::maps, "reads maps from")
                          .step(Engine::vector, Operand::maps, "reads maps from")
                          .step(Engine::mac, Operand::results, "writes results into")
                          .step(Engine::vector, Operand::results, "writes results into")
                          .step(Engine::dma, Operand::stores, "stores from"));
  home(Content::weights, Path(*this, where)
                             .step(Engine::dma, Operand::loads, "loads into")
                             .step(Engine::mac, Operand::weights, "reads weights from"));
  home(Content::sums, Path(*this, where).step(Engine::mac, Operand::sums, "keeps sums in"));
  std::string places;
  for (size_t content = 0; content < kContents; ++content)
    places += text(content > 0 ? ", " : "", kContentNames[content], " in '", sram[homes[content]].name, "'");
  for (size_t k = 0; k < sram.size(); ++k) {
    if (std::find(homes.begin(), homes.end(), k) == homes.end())
      throw InvalidModel(text(where, ": sram[", k, "] '", sram[k].name, "' would hold nothing: ", places,
                              " lie, the largest scratchpads that their engines reach. Name it in an engine's "
                              "'memories', or leave it out."));
  }
}

}  // namespace hetnn::npu
