// Compiles accelerator subgraphs for the sizes of the example and those that the options name.
#include <algorithm>

#include "hetnn/backends/schedules.h"
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/symbols.h"

namespace hetnn::pipeline {

void check_bindings(const std::vector<Symbol>& symbols, const Bindings& bindings) {
  for (const auto& [name, size] : bindings) {
    if (std::any_of(symbols.begin(), symbols.end(),
                    [&, wanted = name](const Symbol& symbol) { return symbol.name == wanted; }))
      continue;
    std::string known;
    for (const Symbol& symbol : symbols) known += (known.empty() ? "" : ", ") + symbol.name;
    throw InvalidModel(text("shapes: the model has no symbol '", name, "'; ",
                            known.empty() ? "all its sizes are fixed" : "its symbols are " + known, "."));
  }
  for (const Symbol& symbol : symbols) {
    auto at = bindings.find(symbol.name);
    if (at == bindings.end() || at->second < symbol.min || at->second > symbol.max) {
      throw InvalidModel(text("symbol '", symbol.name, "' must have a value in [", symbol.min, ", ", symbol.max,
                              "]; got ", at == bindings.end() ? std::string("none") : std::to_string(at->second), "."));
    }
  }
}

void add_variant(Draft& draft, const Bindings& bindings, std::string* refused) {
  program::Program& program = draft.assembler.program();
  const std::vector<Symbol> symbols = ir::free_symbols(draft.graph);
  check_bindings(symbols, bindings);
  Bindings given;
  for (const Symbol& symbol : symbols) given.emplace(symbol.name, bindings.at(symbol.name));
  // Schedules are given for the model; what bodies compute is scheduled anew.
  backends::LowerOptions lowering = draft.lowering;
  if (draft.number >= 0) lowering.schedule.clear();
  for (size_t k = 0; k < draft.subgraphs.size(); ++k) {
    const Subgraph& subgraph = draft.subgraphs[k];
    const auto add = [&] {
      draft.backend(subgraph.device)
          .add_variant(subgraph.graph, given, program.subprograms[k], draft.assembler, lowering);
    };
    if (!refused) {
      add();
      continue;
    }
    try {
      add();
    } catch (const DoesNotFit& error) {
      *refused += text("\n  ", subgraph.name, ": ", error.what());
    } catch (const Unsupported& error) {
      *refused += text("\n  ", subgraph.name, ": ", error.what());
    }
  }
}

bool has_variants(const Draft& draft) {
  const auto of_device = [&](const Subgraph& subgraph) { return draft.backend(subgraph.device).has_variants(); };
  const bool open = !ir::free_symbols(draft.graph).empty();
  return (open && std::ranges::any_of(draft.subgraphs, of_device)) ||
         std::ranges::any_of(draft.bodies, [](const auto& body) { return has_variants(*body.second); });
}

Draft* find_body(Draft& draft, int32_t number) {
  if (draft.number == number) return &draft;
  for (const auto& [name, body] : draft.bodies) {
    if (Draft* found = find_body(*body, number)) return found;
  }
  return nullptr;
}

namespace {

// Every section of a schedule is of a subgraph; one that is of none would be silently left aside.
void demand_known_subgraphs(const Draft& draft) {
  if (draft.number >= 0) return;
  for (const backends::ScheduleSection& section : backends::read_sections(draft.lowering.schedule)) {
    if (std::ranges::any_of(draft.subgraphs, [&](const Subgraph& each) { return each.name == section.subgraph; }))
      continue;
    std::string known;
    for (const Subgraph& each : draft.subgraphs) known += text(known.empty() ? "" : ", ", "'", each.name, "'");
    throw InvalidModel(text("schedule: the plan has no subgraph '", section.subgraph, "'; it has ", known,
                            ". Plan with the options with which the schedule was printed."));
  }
}

}  // namespace

void specialize(Draft& draft) {
  Bindings hints;  // of sizes that a caller gives, not of those that come out of values
  for (const Symbol& symbol : ir::free_symbols(draft.graph))
    hints.emplace(symbol.name, draft.graph.hints().at(symbol.name));
  demand_known_subgraphs(draft);
  add_variant(draft, hints);
  for (const Bindings& bindings : draft.options.shapes) add_variant(draft, bindings);
}

}  // namespace hetnn::pipeline
