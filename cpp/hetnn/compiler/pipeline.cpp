// Walks the list of passes; times, checks and dumps what each leaves.
#include "hetnn/compiler/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>

#include "hetnn/base/error.h"
#include "hetnn/base/interrupt.h"
#include "hetnn/base/progress.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"

namespace hetnn::pipeline {

#define HETNN_PASS(name, ...) void name(Draft&);
#include "hetnn/compiler/all_passes.inc"
#undef HETNN_PASS

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool verifies() {
#ifdef NDEBUG
  return environment("HETNN_VERIFY") == "1";
#else
  return true;
#endif
}

void verify(const Draft& draft) {
  if (draft.spent) return;
  ir::verify(draft.graph);
  for (const Subgraph& subgraph : draft.subgraphs) ir::verify(subgraph.graph);
}

void write(const std::filesystem::path& path, const ir::Graph& graph) {
  std::ofstream file(path, std::ios::binary);
  file << ir::print(graph, {.constants = false, .locations = true});
  if (!file.flush()) throw InvalidModel(text("dump: cannot write '", path.string(), "'. Name a folder to write to."));
}

// The model after `number` passes; subgraphs change once more after they were taken out of it.
void dump(Draft& draft, const std::string& folder, size_t number, std::string_view name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ostringstream stem;
  stem << std::setw(2) << std::setfill('0') << number << '_' << name;
  write(std::filesystem::path(folder) / (stem.str() + ".ir"), draft.graph);
  for (const Subgraph& subgraph : draft.subgraphs)
    write(std::filesystem::path(folder) / text(stem.str(), '.', subgraph.name, ".ir"), subgraph.graph);
}

target::Target target_of(const TargetSpec& spec, std::vector<std::shared_ptr<const backends::Backend>>& made) {
  if (spec.devices.empty()) throw InvalidModel("a target must have at least one device; got none.");
  target::Target out;
  out.name = spec.name;
  out.default_bytes_per_us = spec.bytes_per_us;
  out.default_latency_us = spec.latency_us;
  out.links = spec.links;
  for (const backends::DeviceSpec& device : spec.devices) {
    made.push_back(backends::make_backend(device));
    out.devices.push_back(made.back());
  }
  return out;
}

// What is wrong with the names or types the verifier says.
void keep_states(ir::Graph& graph, const Words& states) {
  for (const auto& [input, output] : states) {
    ir::Mutation& state = graph.mutations.emplace_back(ir::Mutation{input, output, {}});
    const ir::Value* value = graph.find_value(input);
    if (value && is_static(value->shape())) state.initial = Tensor::zeros(value->dtype(), evaluate(value->shape(), {}));
  }
}

void check_inputs(const ir::Graph& graph, const Figures& inputs_within) {
  std::set<std::string_view> known;
  std::string names;
  for (const ir::Value* input : graph.inputs()) {
    known.insert(input->name());
    names += text(names.empty() ? "" : ", ", input->name());
  }
  for (const auto& [name, largest] : inputs_within) {
    if (!known.contains(name))
      throw InvalidModel(text("inputs_within: the model has no input '", name, "'; it has ", names, "."));
  }
}

// By how much layers that canonicalization made layers of integers are apart from the model's reals; none where it
// made none.
std::optional<report::NoteRow> note_of(const std::vector<passes::Firing>& rounded_otherwise) {
  if (rounded_otherwise.empty()) return {};
  double sum = 0;
  const passes::Firing* most = &rounded_otherwise.front();
  for (const passes::Firing& firing : rounded_otherwise) {
    sum += firing.steps_apart;
    if (firing.steps_apart > most->steps_apart) most = &firing;
  }
  const auto count = static_cast<double>(rounded_otherwise.size());
  const auto percent = [](double share) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.2g %%", std::min(share, 1.0) * 100);
    return std::string(digits.data());
  };
  return report::NoteRow{
      most->node, text("of ", rounded_otherwise.size(), rounded_otherwise.size() == 1 ? " layer" : " layers",
                       " between conversions the integers are computed exactly, not in the model's f32: about ",
                       percent(sum / count), " of them may be a step apart, of this one ", percent(most->steps_apart),
                       "; deterministic keeps the model's roundings")};
}

}  // namespace

Draft::Draft(ir::Graph model, const TargetSpec& to, const CompileOptions& how)
    : spec(to),
      target(target_of(to, backends)),
      options(how),
      network(network_options(how)),
      lowering(lower_options(how)),
      graph(std::move(model)) {
  keep_states(graph, options.states);
  ir::verify(graph);
  check_inputs(graph, options.inputs_within);
  for (const Bindings& bindings : options.shapes) check_bindings(ir::free_symbols(graph), bindings);
  // Plans are made for the sizes that the caller names first, not for an example's.
  if (options.shapes.empty()) return;
  for (Symbol& symbol : graph.symbols) {
    if (auto at = options.shapes.front().find(symbol.name); at != options.shapes.front().end())
      symbol.hint = at->second;
  }
}

report::Report Draft::report() const {
  report::Report out = plan::report_of(plan, graph, options.strategy);
  out.rewrites = rewrites;
  out.rewriting = rewriting;
  out.fusions = fusions;
  if (std::optional<report::NoteRow> note = note_of(rounded_otherwise)) out.notes.push_back(std::move(*note));
  const Bindings hints = graph.hints();
  for (size_t k = 0; k < out.graph.size(); ++k) {
    const backends::Backend& device = backend(out.graph[k].device);
    if (passes::needs_f32(*plan.nodes[k], device.narrow_arithmetic(hints))) out.graph[k].computes_in = "f32";
  }
  for (const auto& [node, body] : bodies) {
    report::Report inner = body->report();
    std::ranges::move(inner.bodies, std::back_inserter(out.bodies));
    inner.bodies.clear();
    out.bodies.push_back({node, std::move(inner)});
  }
  return out;
}

passes::LegalizeOptions Draft::legalize_options() const {
  return {.disabled_rules = options.disabled_rules,
          .excluded_nodes = kept_as_written,
          .inputs_within = options.inputs_within};
}

const backends::Backend& Draft::backend(const std::string& device) const {
  return *backends[target.device_index(device)];
}

std::span<const Pass> passes() {
  static constexpr Pass kPasses[] = {
#define HETNN_PASS(name, stage, ...) {#name, name, ir::Stage::stage, {__VA_ARGS__}},
#include "hetnn/compiler/all_passes.inc"
#undef HETNN_PASS
  };
  return kPasses;
}

namespace {

// From 0 to 1, what of the time of all passes those before pass `k` take.
double share_before(size_t k, bool with_accelerators) {
  double before = 0, all = 0;
  for (size_t i = 0; i < passes().size(); ++i) {
    const PassShare& share = passes()[i].share;
    const double own = with_accelerators ? share.with_accelerators : share.alone;
    all += own;
    if (i < k) before += own;
  }
  return before / all;
}

}  // namespace

void run_passes(Draft& draft, ir::Stage last) {
  const std::string folder = draft.options.dump.value_or(environment("HETNN_DUMP"));
  if (!folder.empty() && draft.passes.empty()) dump(draft, folder, 0, "imported");
  for (const Pass& pass : passes().subspan(draft.passes.size())) {
    if (pass.stage > last) break;
    check_interrupt();
    const bool several = draft.target.devices.size() > 1;
    const size_t k = draft.passes.size();
    const ProgressStep step(pass.name, share_before(k, several), share_before(k + 1, several));
    const auto began = std::chrono::steady_clock::now();
    pass.run(draft);
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - began;
    draft.passes.push_back({pass.name, pass.stage, spent.count()});
    if (!folder.empty()) dump(draft, folder, draft.passes.size(), pass.name);
    if (verifies()) verify(draft);
  }
}

}  // namespace hetnn::pipeline
