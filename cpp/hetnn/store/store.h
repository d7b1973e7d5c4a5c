// Networks by id and version: what each is made of, where it runs, and its executable, in SQLite beside files named by
// their hash. Large weights are files of their own, which executables share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/program/program.h"
#include "hetnn/store/database.h"

namespace hetnn::store {

/// One executable under a network's id.
struct Version {
  std::string network;
  int64_t version = 0;
  std::string hash;    // of the executable's file, and its name
  std::string target;  // that it was compiled for
  int64_t bytes = 0;   // of that and of the weights' files that it names
  bool operator==(const Version&) const = default;
};

/// A network of the list; `bytes` counts a file of several versions once.
struct Network {
  std::string network;
  std::vector<int64_t> versions;
  int64_t bytes = 0;
};

struct Association {
  Version version;
  std::string document;                  // nodes and subgraphs, as JSON
  std::vector<std::string> deployed_on;  // devices
};

struct Damage {
  std::string network;  // empty: of the store itself
  int64_t version = 0;
  std::string what;
};

struct Freed {
  int64_t files = 0;
  int64_t bytes = 0;
};

/// InvalidModel unless the id matches [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
void check_id(std::string_view id);

/// A folder. Several processes may read while one writes; writers take turns. Every write is whole or absent, wherever
/// the process stops: a file is whole before a row names it. Thread-safe; serves both sides of a fork.
class Store {
 public:
  /// Opens the folder, or makes it. Unsupported when a newer hetnn wrote it.
  explicit Store(std::string path);
  ~Store();

  /// Keeps the image, or the file's executable, under the id; by default as the version after the newest. InvalidModel
  /// when it is no sound executable or when the version holds another one. Keeping the same twice changes nothing.
  Version add(const std::string& id, const program::Blob& image, std::optional<int64_t> version = {});
  Version add_file(const std::string& id, const std::string& path, std::optional<int64_t> version = {});
  /// The version that runs unless one is named: the newest that is deployed, else the newest; nothing where there is
  /// none. Everything below throws InvalidModel where there is none.
  std::optional<Version> find(const std::string& id, std::optional<int64_t> version = {});
  /// Where the executable's file is; the weights that it names stand beside it.
  std::string file(const Version& version) const;
  std::vector<Network> list();
  Association association(const std::string& id, std::optional<int64_t> version = {});
  /// Forgets one version, or all. Their files go with `gc`.
  void remove(const std::string& id, std::optional<int64_t> version = {});

  /// Makes the version, by default the newest, the one that runs, ready ahead of requests, on all of its devices; no
  /// other version stays deployed. `places` says where devices stand that are not here, in words of whoever loads it.
  /// InvalidModel where `devices` are some and are not all that it runs on, and for a place of another device.
  void deploy(const std::string& id, std::optional<int64_t> version, std::vector<std::string> devices,
              const std::map<std::string, std::string>& places = {});
  /// Of a version, those it was deployed with.
  std::map<std::string, std::string> places(const Version& version);
  void undeploy(const std::string& id, std::optional<int64_t> version);
  /// Every version that is deployed.
  std::vector<Version> deployed();

  /// Reads every byte. What is listed is never run.
  std::vector<Damage> verify();
  /// Deletes the files that no version names.
  Freed gc();

 private:
  Version keep(const std::string& id, const program::Program& program, const program::Blob& image,
               const std::string& called, std::optional<int64_t> version);
  /// Makes sure that the file is there and whole.
  void keep_file(const std::string& path, const std::string& hash, std::span<const std::byte> bytes) const;
  std::string part(const std::string& hash) const;
  Database& database();

  const std::string path_;
  std::mutex mutex_;
  std::unique_ptr<Database> database_;
  int opened_by_ = 0;  // the process: a connection must not cross a fork
};

/// Nodes with depth and what they depend on, subgraphs in run order with their devices: the `nodes` and `subgraphs` of
/// a version, as JSON, and the names of the target's devices.
struct Description {
  std::string document, target;
  std::vector<std::string> devices;
};
Description describe(const program::Program& program, const std::string& called);
/// The devices of a document's subgraphs.
std::vector<std::string> devices_of(const std::string& document);

}  // namespace hetnn::store
