// The store: ids, versions, rows that are found again, and what it refuses.
#include "hetnn/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect_error.h"
#include "hetnn/program/pack.h"

namespace hetnn::store {
namespace {

namespace fs = std::filesystem;

class StoreTest : public testing::Test {
 protected:
  StoreTest()
      : folder_(fs::path(testing::TempDir()) /
                (std::string("store_") + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
  }
  ~StoreTest() override { fs::remove_all(folder_); }

  const fs::path folder_;
};

// A report, as the compiler writes it, with these rows.
std::string report(const std::string& subgraphs, const std::string& not_on_preferred, const std::string& graph,
                   const std::string& bodies) {
  return R"({"version": 2, "target": "cpu+npu", "strategy": "cost", "nodes": 3, "nodes_on": {"cpu": 1, "npu": 2},
      "macs_on": {"cpu": 0, "npu": 0}, "subgraphs": [)" +
         subgraphs +
         R"(], "crossings": [], "crossing_bytes": 0, "predicted_us": 2, "measured_nodes": 0,
      "parts": {"node_us": 2, "launch_us": 0, "transfer_us": 0}, "makespan_us": 2, "cut_us": null,
      "lower_bound_us": null, "gap": null, "lower_bound_subgraphs": {}, "candidates": [], "margin_us": null,
      "rewriting": null, "rewrites": [], "fusions": [], "not_on_preferred": [)" +
         not_on_preferred + R"(], "notes": [], "graph": [)" + graph + R"(], "bodies": [)" + bodies + "]}";
}

std::string subgraph(const std::string& device, const std::string& nodes) {
  return R"({"device": ")" + device + R"(", "nodes": [)" + nodes +
         R"(], "macs": 0, "inputs": [], "outputs": [], "predicted_us": 1, "start_us": 0, "finish_us": 1})";
}

// Two subgraphs, the second after the first; `weight` makes executables differ. `bodies`: rows of its report.
program::Blob image(uint8_t weight, const std::string& bodies = "") {
  program::Program p;
  p.buffers = {{.name = "x", .shape = {2}, .place = program::Place::input},
               {.name = "t", .shape = {2}},
               {.name = "y", .shape = {2}, .place = program::Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 2}};
  p.subprograms = {{"first", "npu", {0}, {1}, {}, program::Code::of_text("null", 1, "")},
                   {"second", "cpu", {1}, {2}, {0}, program::Code::of_text("null", 1, "")}};
  auto bytes = std::make_shared<program::Image>(64, std::byte{weight});
  p.weights.append({bytes, *bytes});
  p.target_json = R"({"devices": [{"kind": "cpu", "name": "cpu"}, {"kind": "npu", "name": "npu"}]})";
  p.report_json =
      report(subgraph("npu", R"("a", "b")") + "," + subgraph("cpu", R"("c")"),
             R"({"node": "c", "op": "one", "device": "cpu", "loc": "", "module": "",
         "reasons": [{"device": "npu", "label": "one_c1", "found": "", "wanted": "", "text": "no"}]})",
             R"({"node": "a", "op": "one", "inputs": [], "device": "npu", "subgraph": 0, "supported_by": ["npu"]},
        {"node": "b", "op": "two", "inputs": ["a"], "device": "npu", "subgraph": 0, "supported_by": ["cpu", "npu"]},
        {"node": "c", "op": "one", "inputs": ["a", "b"], "device": "cpu", "subgraph": 1, "supported_by": ["cpu"]})",
             bodies);
  auto packed = std::make_shared<const program::Image>(program::pack(p));
  return {packed, *packed};
}

TEST_F(StoreTest, VersionsCountUpAndTheNewestIsFound) {
  Store store(folder_.string());
  EXPECT_EQ(store.add("net", image(1)).version, 1);
  EXPECT_EQ(store.add("net", image(2)).version, 2);
  EXPECT_EQ(store.add("net", image(3), 7).version, 7);
  EXPECT_EQ(store.add("net", image(4)).version, 8);
  EXPECT_EQ(store.find("net")->version, 8);
  EXPECT_EQ(store.find("net", 2)->target, "cpu+npu");
  EXPECT_EQ(store.find("net", 3), std::nullopt);
  EXPECT_EQ(store.find("other"), std::nullopt);
  const auto found = program::map_file(store.file(*store.find("net", 7)));
  EXPECT_TRUE(std::ranges::equal(found.bytes, image(3).bytes));
}

TEST_F(StoreTest, TheAssociationHasDepthsOrderAndSupport) {
  Store store(folder_.string());
  store.add("net", image(1));
  EXPECT_EQ(store.association("net").document,
            R"({"nodes":[{"node":"a","op":"one","depth":0,"supports":["npu"],"depends_on":[]},)"
            R"({"node":"b","op":"two","depth":1,"supports":["npu","cpu"],"depends_on":["a"]},)"
            R"({"node":"c","op":"one","depth":2,"supports":["cpu"],"depends_on":["a","b"]}],"subgraphs":[)"
            R"({"index":0,"device":"npu","supports":["npu"],"nodes":["a","b"],"depends_on":[]},)"
            R"({"index":1,"device":"cpu","supports":["cpu"],"nodes":["c"],"depends_on":[0]}]})");
}

TEST_F(StoreTest, TheAssociationHasWhatLoopsRepeat) {
  const std::string graph = R"({"node": "k", "op": "one", "inputs": [], "device": "dsp", "subgraph": 0},
      {"node": "l", "op": "two", "inputs": ["k"], "device": "cpu", "subgraph": 1},
      {"node": "m", "op": "two", "inputs": ["k", "l"], "device": "cpu", "subgraph": 1})";
  const std::string subgraphs = subgraph("dsp", R"("k")") + "," + subgraph("cpu", R"("l", "m")");
  const auto body = [](const std::string& told) { return R"({"node": "c", "report": )" + told + "}"; };
  Store store(folder_.string());
  store.add("net", image(1, body(report(subgraphs, "", graph, ""))));
  EXPECT_THAT(
      store.association("net").document,
      testing::EndsWith(
          R"("bodies":[{"of":"c","nodes":[{"node":"k","op":"one","depth":0,"supports":["dsp","cpu"],"depends_on":[]},)"
          R"({"node":"l","op":"two","depth":1,"supports":["cpu"],"depends_on":["k"]},)"
          R"({"node":"m","op":"two","depth":2,"supports":["cpu"],"depends_on":["k","l"]}],)"
          R"("subgraphs":[)"
          R"({"index":0,"device":"dsp","supports":["dsp","cpu"],"nodes":["k"],"depends_on":[]},)"
          R"({"index":1,"device":"cpu","supports":["cpu"],"nodes":["l","m"],)"
          R"("depends_on":[0]}]}]})"));
  EXPECT_ERROR(store.deploy("net", {}, {"dsp"}), InvalidModel, "runs on cpu, dsp, npu; got dsp");
  store.deploy("net", {}, {});
  EXPECT_THAT(store.association("net").deployed_on, testing::ElementsAre("cpu", "dsp", "npu"));
  EXPECT_ERROR(store.add("damaged", image(2, body(report(subgraph("dsp", R"("k")"), "", graph, "")))), InvalidModel,
               "the body of 'c': its report names the subgraph 1 of 1");
}

TEST_F(StoreTest, AVersionIsNeverAnotherExecutable) {
  Store store(folder_.string());
  const Version first = store.add("net", image(1), 1);
  EXPECT_EQ(store.add("net", image(1), 1), first);
  EXPECT_ERROR(store.add("net", image(2), 1), InvalidModel, "'net' has a version 1 already");
  EXPECT_ERROR(store.add("net", image(2), 0), InvalidModel, "1 or more; got 0");
}

TEST_F(StoreTest, EqualExecutablesAreOneFile) {
  Store store(folder_.string());
  store.add("a", image(1));
  store.add("a", image(1));
  store.add("b", image(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "files"), fs::directory_iterator()), 1);
  const auto size = static_cast<int64_t>(image(1).bytes.size());
  EXPECT_EQ(store.list()[0].versions, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(store.list()[0].bytes, size);
  store.remove("a");
  EXPECT_EQ(store.gc().files, 0);
  store.remove("b", 1);
  const Freed freed = store.gc();
  EXPECT_EQ(freed.files, 1);
  EXPECT_EQ(freed.bytes, size);
  EXPECT_TRUE(store.list().empty());
  EXPECT_ERROR(store.remove("b"), InvalidModel, "holds no network 'b'");
}

TEST_F(StoreTest, DeploymentsNameDevicesOfTheVersion) {
  Store store(folder_.string());
  store.add("net", image(1));
  EXPECT_ERROR(store.deploy("net", {}, {"gpu"}), InvalidModel, "runs on cpu, npu; got gpu");
  EXPECT_ERROR(store.deploy("net", {}, {"npu"}), InvalidModel, "A network is deployed whole");
  EXPECT_TRUE(store.deployed().empty());
  EXPECT_ERROR(store.deploy("net", {}, {}, {{"gpu", "there"}}), InvalidModel, "got a place of 'gpu'");
  store.deploy("net", {}, {"npu", "cpu"}, {{"npu", "there"}});
  EXPECT_THAT(store.association("net").deployed_on, testing::ElementsAre("cpu", "npu"));
  EXPECT_THAT(store.places(*store.find("net")), testing::ElementsAre(testing::Pair("npu", "there")));
  store.deploy("net", {}, {});
  EXPECT_TRUE(store.places(*store.find("net")).empty());
  store.undeploy("net", {});
  store.deploy("net", 1, {});
  EXPECT_THAT(store.association("net").deployed_on, testing::ElementsAre("cpu", "npu"));
  EXPECT_EQ(store.deployed().size(), 1u);
  store.undeploy("net", {});
  EXPECT_TRUE(store.deployed().empty());
  store.deploy("net", 1, {});
  store.remove("net", 1);
  EXPECT_TRUE(store.deployed().empty());
}

TEST_F(StoreTest, IdsThatAreNone) {
  Store store(folder_.string());
  for (const std::string& id : {std::string(), std::string("-a"), std::string("a/b"), std::string(".."),
                                std::string("a\nb"), std::string(129, 'a'), std::string("a\0b", 3)})
    EXPECT_ERROR(store.find(id), InvalidModel, "a network's id must match");
  EXPECT_NO_THROW(check_id(std::string(128, 'a')));
  EXPECT_NO_THROW(check_id("9.A_b-c"));
}

TEST_F(StoreTest, WhatIsNoExecutableOrNoStoreIsRefused) {
  Store store(folder_.string());
  program::Blob cut = image(1);
  cut.bytes = cut.bytes.first(cut.bytes.size() - 1);
  EXPECT_ERROR(store.add("net", cut), InvalidModel, "the executable for 'net'");
  EXPECT_EQ(store.find("net"), std::nullopt);
  const std::string file = (folder_ / "file").string();
  std::ofstream(file) << "text";
  EXPECT_ERROR(Store{file}, InvalidModel, "cannot be made");
}

TEST_F(StoreTest, DatabasesOfOthersAndOfNewerVersions) {
  fs::create_directories(folder_);
  const std::string path = (folder_ / "index.sqlite").string();
  {
    std::vector<std::string_view> steps(9, "");
    steps[0] = "CREATE TABLE versions (a);";
    Database ours(path, steps);
    ours.run("INSERT INTO versions VALUES (1)");
  }
  EXPECT_ERROR(Store{folder_.string()}, Unsupported, "is of version 9; this hetnn knows versions up to 3");
  {
    Database ours(path, std::vector<std::string_view>(9, ""));
    ours.run("PRAGMA application_id = 5");
  }
  EXPECT_ERROR(Store{folder_.string()}, InvalidModel, "is a database, but no store of hetnn");
  fs::remove(path);
  std::ofstream(path) << std::string(4096, 'x');
  EXPECT_ERROR(Store{folder_.string()}, InvalidModel, "It is damaged");
}

TEST_F(StoreTest, ADatabaseOfBeforeGetsTheStepsThatItLacks) {
  fs::create_directories(folder_);
  const std::string path = (folder_ / "d").string();
  const std::string_view steps[] = {"CREATE TABLE t (a);", "ALTER TABLE t ADD COLUMN b DEFAULT 7;"};
  {
    Database before(path, std::span(steps).first(1));
    before.run("INSERT INTO t VALUES (1)");
  }
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(Database(path, steps).run("SELECT a, b FROM t"), (std::vector<std::vector<Cell>>{{1, 7}}));
  EXPECT_ERROR(Database(path, std::span(steps).first(1)), Unsupported, "is of version 2; this hetnn knows versions up");
  Database(path, steps).run("PRAGMA user_version = 0");
  EXPECT_ERROR(Database(path, steps), InvalidModel, "is damaged: it is of version 0");
}

TEST_F(StoreTest, WhatIsNotCommittedIsUndone) {
  fs::create_directories(folder_);
  const std::string_view schema[] = {"CREATE TABLE t (a);"};
  Database database((folder_ / "d").string(), schema);
  {
    Transaction writing(database);
    database.run("INSERT INTO t VALUES (1)");
  }
  EXPECT_TRUE(database.run("SELECT a FROM t").empty());
  Transaction writing(database);
  database.run("INSERT INTO t VALUES (2)");
  writing.commit();
  EXPECT_EQ(database.run("SELECT a FROM t").size(), 1u);
}

}  // namespace
}  // namespace hetnn::store
