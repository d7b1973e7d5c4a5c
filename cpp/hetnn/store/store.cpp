// Networks by id and version in a folder: index.sqlite, and files/HASH.hetnn.
#include "hetnn/store/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"

namespace hetnn::store {
namespace {

namespace fs = std::filesystem;

constexpr int kSchemaVersion = 1;
// The document stands last, so that a list reads none of it.
constexpr std::string_view kSchema = R"(
  CREATE TABLE versions (
    network TEXT NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL, target TEXT NOT NULL, bytes INTEGER NOT NULL,
    row_hash TEXT NOT NULL, document TEXT NOT NULL, UNIQUE (network, version));
  CREATE INDEX by_hash ON versions (hash);
  CREATE TABLE deployments (
    network TEXT NOT NULL, version INTEGER NOT NULL, device TEXT NOT NULL, UNIQUE (network, version, device),
    FOREIGN KEY (network, version) REFERENCES versions (network, version) ON DELETE CASCADE);
)";

std::string hash_text(std::string_view source) {
  return program::content_hash(std::as_bytes(std::span(source.data(), source.size())));
}

// Notices a row that changed without SQLite noticing.
std::string row_hash(const Version& v, const std::string& document) {
  return hash_text(text(v.network, '\n', v.version, '\n', v.hash, '\n', v.target, '\n', v.bytes, '\n', document));
}

[[noreturn]] void damaged() {
  throw InvalidModel(
      "the store holds a value of another type than it wrote: it is damaged. `hetnn store verify` says more.");
}
const std::string& words(const Cell& cell) {
  if (const auto* out = std::get_if<std::string>(&cell)) return *out;
  damaged();
}
int64_t number(const Cell& cell) {
  if (const auto* out = std::get_if<int64_t>(&cell)) return *out;
  damaged();
}

std::string called(const std::string& id, std::optional<int64_t> version) {
  return version ? text("'", id, "' version ", *version) : text("'", id, "'");
}

struct Row {
  Version version;
  std::string document, kept_hash;
  bool sound() const { return row_hash(version, document) == kept_hash; }
};

// Damage may have changed the type of a cell.
Row row_of(const std::vector<Cell>& row) {
  try {
    return {
        {words(row[0]), number(row[1]), words(row[2]), words(row[3]), number(row[4])}, words(row[6]), words(row[5])};
  } catch (const InvalidModel&) {
    return {};
  }
}

// The newest that is deployed, else the newest.
constexpr std::string_view kCurrent =
    "SELECT v.network, v.version, v.hash, v.target, v.bytes, v.row_hash, v.document FROM versions v WHERE v.network = "
    "? "
    "ORDER BY EXISTS (SELECT 1 FROM deployments d WHERE d.network = v.network AND d.version = v.version) DESC, "
    "v.version DESC LIMIT 1";
constexpr std::string_view kNewest =
    "SELECT network, version, hash, target, bytes, row_hash, document FROM versions WHERE network = ? ORDER BY version "
    "DESC LIMIT 1";
constexpr std::string_view kNamed =
    "SELECT network, version, hash, target, bytes, row_hash, document FROM versions WHERE network = ? AND version = ?";

// Without a version the one that `otherwise` selects.
std::optional<Row> look_up(Database& database, const std::string& id, std::optional<int64_t> version,
                           std::string_view otherwise = kCurrent) {
  check_id(id);
  const auto rows = version ? database.run(kNamed, {id, *version}) : database.run(otherwise, {id});
  if (rows.empty()) return std::nullopt;
  Row out = row_of(rows[0]);
  const bool asked = out.version.network == id && (!version || out.version.version == *version);
  if (!asked || !out.sound())
    throw InvalidModel(text("the store's row of ", called(id, version), " is damaged. Remove it and add it again."));
  return out;
}

Row find_row(Database& database, const std::string& id, std::optional<int64_t> version,
             std::string_view otherwise = kCurrent) {
  auto out = look_up(database, id, version, otherwise);
  if (!out) throw InvalidModel(text("the store holds no network ", called(id, version), ". Add it first."));
  return *std::move(out);
}

void sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = folder >= 0 && ::fsync(folder) == 0;
  const int reason = errno;
  if (folder >= 0) ::close(folder);
  if (!done) throw InvalidModel(text("'", path, "' cannot be written: ", std::strerror(reason), "."));
}

}  // namespace

void check_id(std::string_view id) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  const bool fits = !id.empty() && id.size() <= 128 && letter(id[0]) && std::all_of(id.begin(), id.end(), [&](char c) {
    return letter(c) || c == '.' || c == '_' || c == '-';
  });
  if (fits) return;
  const std::string shown(id.substr(0, 64));
  throw InvalidModel(text("a network's id must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}; got '", shown,
                          id.size() > 64 ? "'…" : "'", " of ", id.size(), " bytes. Name it otherwise."));
}

Store::Store(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(fs::path(path_) / "files", error);
  if (error) throw InvalidModel(text("the store '", path_, "' cannot be made: ", error.message(), ". Check the path."));
  database();
}

Store::~Store() {
  if (opened_by_ != ::getpid()) static_cast<void>(database_.release());  // NOLINT: the parent's, which closes it
}

Database& Store::database() {
  if (opened_by_ != ::getpid()) {
    static_cast<void>(database_.release());  // NOLINT: closing it here would drop the parent's locks
    database_ = std::make_unique<Database>(path_ + "/index.sqlite", kSchema, kSchemaVersion);
    opened_by_ = ::getpid();
  }
  return *database_;
}

std::string Store::file(const Version& version) const { return text(path_, "/files/", version.hash, ".hetnn"); }

Version Store::add(const std::string& id, const program::Blob& image, std::optional<int64_t> version) {
  check_id(id);
  if (version && *version < 1) throw InvalidModel(text("a version must be 1 or more; got ", *version, "."));
  const std::string name = text("the executable for '", id, "'");
  const Description described = describe(program::unpack(image, name), name);
  Version out{.network = id,
              .hash = program::content_hash(image.bytes),
              .target = described.target,
              .bytes = static_cast<int64_t>(image.bytes.size())};
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);  // held while the file is written, so that no gc takes it for garbage
  if (!version) {
    const auto newest = db.run("SELECT max(version) FROM versions WHERE network = ?", {id});
    const auto* before = std::get_if<int64_t>(&newest[0][0]);
    version = before == nullptr ? 1 : *before + 1;
  } else if (const auto rows = db.run(kNamed, {id, *version}); !rows.empty()) {
    const Row row = row_of(rows[0]);
    if (row.version.hash == out.hash && row.sound()) return row.version;
    throw InvalidModel(text("'", id, "' has a version ", *version, " already, with another executable. Remove it, or ",
                            "choose another version."));
  }
  out.version = *version;
  const std::string path = file(out);
  std::error_code error;
  const auto size = fs::file_size(path, error);
  bool whole = !error && size == image.bytes.size();
  if (whole) whole = program::content_hash(program::map_file(path).bytes) == out.hash;
  if (!whole) program::write_file(path, image.bytes);
  sync_folder(path_ + "/files");
  db.run(
      "INSERT INTO versions (network, version, hash, target, bytes, row_hash, document) VALUES (?, ?, ?, ?, ?, ?, ?)",
      {id, out.version, out.hash, out.target, out.bytes, row_hash(out, described.document), described.document});
  writing.commit();
  return out;
}

std::optional<Version> Store::find(const std::string& id, std::optional<int64_t> version) {
  const std::lock_guard lock(mutex_);
  const auto row = look_up(database(), id, version);
  return row ? std::optional(row->version) : std::nullopt;
}

std::vector<Network> Store::list() {
  const std::lock_guard lock(mutex_);
  std::vector<Network> out;
  std::set<std::string> counted;
  for (const auto& row :
       database().run("SELECT network, version, hash, bytes FROM versions ORDER BY network, version")) {
    if (out.empty() || out.back().network != words(row[0])) {
      out.push_back({words(row[0]), {}, 0});
      counted.clear();
    }
    out.back().versions.push_back(number(row[1]));
    if (counted.insert(words(row[2])).second) out.back().bytes += number(row[3]);
  }
  return out;
}

Association Store::association(const std::string& id, std::optional<int64_t> version) {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Row row = find_row(db, id, version);
  Association out{std::move(row.version), std::move(row.document), {}};
  for (const auto& device : db.run("SELECT device FROM deployments WHERE network = ? AND version = ? ORDER BY device",
                                   {id, out.version.version}))
    out.deployed_on.push_back(words(device[0]));
  return out;
}

void Store::remove(const std::string& id, std::optional<int64_t> version) {
  check_id(id);
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);
  if (version) {
    db.run("DELETE FROM versions WHERE network = ? AND version = ?", {id, *version});
  } else {
    db.run("DELETE FROM versions WHERE network = ?", {id});
  }
  if (db.changed() == 0) throw InvalidModel(text("the store holds no network ", called(id, version), "."));
  writing.commit();
}

void Store::deploy(const std::string& id, std::optional<int64_t> version, std::vector<std::string> devices) {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);
  const Row row = find_row(db, id, version, kNewest);
  const std::vector<std::string> known = devices_of(row.document);
  // A part would mean nothing: the whole executable is opened, on every device that it runs on.
  if (!devices.empty() && std::set(devices.begin(), devices.end()) != std::set(known.begin(), known.end())) {
    const auto names = [](const std::vector<std::string>& each) {
      std::string out;
      for (const std::string& one : each) out += text(out.empty() ? "" : ", ", one);
      return out;
    };
    throw InvalidModel(text(called(id, row.version.version), " runs on ", names(known), "; got ", names(devices),
                            ". A network is deployed whole: name all of its devices, or none."));
  }
  db.run("DELETE FROM deployments WHERE network = ?", {id});
  for (const std::string& device : known) {
    db.run("INSERT OR IGNORE INTO deployments (network, version, device) VALUES (?, ?, ?)",
           {id, row.version.version, device});
  }
  writing.commit();
}

void Store::undeploy(const std::string& id, std::optional<int64_t> version) {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);
  find_row(db, id, version);
  if (version) {
    db.run("DELETE FROM deployments WHERE network = ? AND version = ?", {id, *version});
  } else {
    db.run("DELETE FROM deployments WHERE network = ?", {id});
  }
  writing.commit();
}

std::vector<Version> Store::deployed() {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  std::vector<Version> out;
  for (const auto& row : db.run("SELECT DISTINCT network, version FROM deployments ORDER BY network, version"))
    out.push_back(find_row(db, words(row[0]), number(row[1])).version);
  return out;
}

std::vector<Damage> Store::verify() {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  std::vector<Damage> out;
  std::vector<std::vector<Cell>> rows;
  try {
    for (const auto& row : db.run("PRAGMA integrity_check")) {
      if (words(row[0]) != "ok") out.push_back({"", 0, text("index.sqlite: ", words(row[0]))});
    }
    rows = db.run("SELECT network, version, hash, target, bytes, row_hash, document FROM versions");
  } catch (const InvalidModel& error) {
    out.push_back({"", 0, error.what()});
    return out;
  }
  for (const auto& cells : rows) {
    const Row row = row_of(cells);
    const Version& version = row.version;
    if (!row.sound()) {
      out.push_back({version.network, version.version, "its row was altered"});
      continue;
    }
    try {
      if (program::content_hash(program::map_file(file(version)).bytes) != version.hash)
        out.push_back({version.network, version.version, text("files/", version.hash, ".hetnn was altered")});
    } catch (const Error& error) {
      out.push_back({version.network, version.version, error.what()});
    }
  }
  return out;
}

Freed Store::gc() {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);  // nobody adds meanwhile
  std::set<std::string> named;
  for (const auto& row : db.run("SELECT DISTINCT hash FROM versions")) named.insert(words(row[0]) + ".hetnn");
  Freed out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(path_) / "files", error)) {
    if (!entry.is_regular_file(error) || named.contains(entry.path().filename().string())) continue;
    const auto bytes = static_cast<int64_t>(entry.file_size(error));
    if (!fs::remove(entry.path(), error)) continue;
    ++out.files;
    out.bytes += bytes;
  }
  return out;
}

}  // namespace hetnn::store
