// The pipeline is a list: it is walked in order, and what each pass leaves is timed, verified and dumped.
#include "hetnn/compiler/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"
#include "hetnn/npu/spec.h"

namespace hetnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// A convolution that an array of multipliers takes, and a rectifier that it does not.
constexpr const char* kModel = R"(graph @g {stage = imported} (%x: f32[1,2,8,8]) -> (%z) {
  %w = constant() {value = f32[2,2,1,1] {1, 2, 3, 4}} : f32[2,2,1,1]
  %y = conv2d(%x, %w) : f32[1,2,8,8]
  %z = relu(%y) : f32[1,2,8,8]
}
)";

TargetSpec both() {
  return parse_target(R"({"name": "both", "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu",
                          "spec": )" +
                      npu::spec_to_json(npu::systolic_spec(8, 8)) + "}]}");
}

ir::Graph model() { return ir::parse(kModel); }

CompileOptions take_all() {
  CompileOptions options;
  options.strategy = "take-all";
  return options;
}

std::vector<std::string> names(const std::vector<PassTime>& passes) {
  std::vector<std::string> out;
  for (const PassTime& pass : passes) out.emplace_back(pass.name);
  return out;
}

// A folder of its own for the test.
std::filesystem::path fresh_folder() {
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "hetnn_pipeline_test";
  std::filesystem::remove_all(folder);
  return folder;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(Pipeline, TheListIsTheWayOfAModel) {
  EXPECT_EQ(pipeline::passes().front().name, "canonicalize");
  for (size_t k = 1; k < pipeline::passes().size(); ++k)
    EXPECT_LE(pipeline::passes()[k - 1].stage, pipeline::passes()[k].stage) << pipeline::passes()[k].name;
  const auto compiled = Compilation::make(model(), both(), take_all());
  const std::vector<PassTime>& done = compiled->model().passes();
  ASSERT_EQ(done.size(), pipeline::passes().size());
  for (size_t k = 0; k < done.size(); ++k) {
    EXPECT_EQ(done[k].name, pipeline::passes()[k].name);
    EXPECT_EQ(done[k].stage, pipeline::passes()[k].stage);
    EXPECT_GE(done[k].ms, 0);
  }
}

TEST(Pipeline, PlanningStopsAtTheCut) {
  const auto planned = PlannedModel::make(model(), both(), take_all());
  EXPECT_THAT(names(planned->passes()), ElementsAre("canonicalize", "copy_outputs", "choose_rewrites", "recompute",
                                                    "place", "price_rewrites", "cut", "divide_batches", "plan_bodies"));
  EXPECT_EQ(planned->graph().stage, ir::Stage::cut);
}

TEST(Pipeline, PassesRunOnceAndInStages) {
  pipeline::Draft draft(model(), both(), take_all());
  pipeline::run_passes(draft, ir::Stage::canonical);
  EXPECT_EQ(draft.graph.stage, ir::Stage::canonical);
  pipeline::run_passes(draft, ir::Stage::placed);
  EXPECT_EQ(draft.graph.stage, ir::Stage::placed);
  for (const ir::Node* node : draft.graph.nodes()) {
    EXPECT_EQ(node->device, node->is_constant() ? "" : node->name() == "y" ? "npu" : "cpu");
  }
  const size_t done = draft.passes.size();
  pipeline::run_passes(draft, ir::Stage::placed);
  EXPECT_EQ(draft.passes.size(), done);
}

TEST(Pipeline, TheGraphIsDumpedAfterEachPass) {
  const std::filesystem::path folder = fresh_folder();
  CompileOptions options = take_all();
  options.dump = (folder / "deep").string();
  Compilation::make(model(), both(), options);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(*options.dump))
    files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  std::vector<std::string> expected = {
      "00_imported.ir",       "01_canonicalize.ir", "02_copy_outputs.ir",      "03_choose_rewrites.ir",
      "04_recompute.ir",      "05_place.ir",        "06_price_rewrites.ir",    "07_cut.ir",
      "08_divide_batches.ir", "09_plan_bodies.ir",  "10_declare_boundaries.ir"};
  for (const std::string pass : {"11_extract", "12_compute_in_f32", "13_fuse", "14_lower_bodies", "15_lower",
                                 "16_keep_graph", "17_specialize"}) {
    for (const char* of : {".cpu.1.ir", ".ir", ".npu.0.ir"}) expected.push_back(pass + of);
  }
  EXPECT_EQ(files, expected);
  const auto dumped = [&](const char* name) { return content(std::filesystem::path(*options.dump) / name); };
  EXPECT_EQ(dumped("00_imported.ir"), kModel);
  EXPECT_THAT(dumped("03_choose_rewrites.ir"), Not(HasSubstr("on npu")));
  EXPECT_THAT(dumped("05_place.ir"), HasSubstr("conv2d(%x, %w) : f32[1,2,8,8] on npu"));
  EXPECT_THAT(dumped("07_cut.ir"), HasSubstr("on npu in 0"));
  EXPECT_EQ(ir::print(ir::parse(dumped("07_cut.ir"))), dumped("07_cut.ir"));
  EXPECT_THAT(dumped("11_extract.cpu.1.ir"), HasSubstr("relu(%y)"));
}

TEST(Pipeline, AFolderThatCannotBeWrittenIsNamed) {
  CompileOptions options = take_all();
  options.dump = "/dev/null/dumps";
  EXPECT_THAT([&] { PlannedModel::make(model(), both(), options); },
              ThrowsMessage<InvalidModel>(HasSubstr("dump: cannot write '/dev/null/dumps/00_imported.ir'")));
}

TEST(Pipeline, APassThatLeavesABrokenGraphIsCaught) {
  pipeline::Draft draft(model(), both(), take_all());
  pipeline::run_passes(draft, ir::Stage::legal);
  ir::Rewriter(draft.graph).add("relu", {draft.graph.find_value("y")});  // nobody reads it
  setenv("HETNN_VERIFY", "1", 1);
  EXPECT_THAT([&] { pipeline::run_passes(draft, ir::Stage::placed); },
              ThrowsMessage<InternalError>(HasSubstr("is dead")));
  unsetenv("HETNN_VERIFY");
}

TEST(Pipeline, ATargetWithoutDevicesIsRefused) {
  EXPECT_THAT([] { PlannedModel::make(model(), TargetSpec{}, {}); },
              ThrowsMessage<InvalidModel>(HasSubstr("a target must have at least one device")));
}

}  // namespace
}  // namespace hetnn
