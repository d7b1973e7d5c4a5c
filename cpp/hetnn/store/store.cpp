// Networks by id and version in a folder: index.sqlite, files/HASH.hetnn, and files/HASH.weights, which those name.
#include "hetnn/store/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"

namespace hetnn::store {
namespace {

namespace fs = std::filesystem;

// The document stands last, so that a list reads none of it.
constexpr std::string_view kVersions = R"(
  CREATE TABLE versions (
    network TEXT NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL, target TEXT NOT NULL, bytes INTEGER NOT NULL,
    row_hash TEXT NOT NULL, document TEXT NOT NULL, UNIQUE (network, version));
  CREATE INDEX by_hash ON versions (hash);
  CREATE TABLE deployments (
    network TEXT NOT NULL, version INTEGER NOT NULL, device TEXT NOT NULL, UNIQUE (network, version, device),
    FOREIGN KEY (network, version) REFERENCES versions (network, version) ON DELETE CASCADE);
)";
// The files of weights that a version's executable names, HASH:BYTES each; no row where it names none.
constexpr std::string_view kParts = R"(
  CREATE TABLE parts (
    network TEXT NOT NULL, version INTEGER NOT NULL, parts TEXT NOT NULL, UNIQUE (network, version),
    FOREIGN KEY (network, version) REFERENCES versions (network, version) ON DELETE CASCADE);
)";
// Where devices of a deployed version stand, as whoever loads it reads it; no row where that is here.
constexpr std::string_view kPlaces = R"(
  CREATE TABLE places (
    network TEXT NOT NULL, version INTEGER NOT NULL, device TEXT NOT NULL, place TEXT NOT NULL,
    UNIQUE (network, version, device),
    FOREIGN KEY (network, version, device) REFERENCES deployments (network, version, device) ON DELETE CASCADE);
)";
constexpr std::string_view kSchema[] = {kVersions, kParts, kPlaces};

std::string hash_text(std::string_view source) {
  return program::content_hash(std::as_bytes(std::span(source.data(), source.size())));
}

// Notices a row that changed without SQLite noticing.
std::string row_hash(const Version& v, const std::string& document, const std::string& parts) {
  return hash_text(text(v.network, '\n', v.version, '\n', v.hash, '\n', v.target, '\n', v.bytes, '\n', document,
                        parts.empty() ? "" : "\n", parts));
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

std::string names(const std::vector<std::string>& each) {
  std::string out;
  for (const std::string& one : each) out += text(out.empty() ? "" : ", ", one);
  return out;
}

struct Row {
  Version version;
  std::string document, kept_hash, parts;
  bool sound() const { return row_hash(version, document, parts) == kept_hash; }
};

// Calls `each` with hash and bytes. InvalidModel where the text was damaged.
template <typename Each>
void for_parts(std::string_view parts, Each&& each) {
  constexpr size_t kDigits = 64;
  while (!parts.empty()) {
    const size_t end = std::min(parts.find(' '), parts.size());
    int64_t bytes = 0;
    const auto [stop, error] = std::from_chars(parts.data() + std::min(end, kDigits + 1), parts.data() + end, bytes);
    if (error != std::errc() || stop != parts.data() + end || parts[kDigits] != ':') damaged();
    each(std::string(parts.substr(0, kDigits)), bytes);
    parts.remove_prefix(std::min(end + 1, parts.size()));
  }
}

// Damage may have changed the type of a cell.
Row row_of(const std::vector<Cell>& row) {
  try {
    return {{words(row[0]), number(row[1]), words(row[2]), words(row[3]), number(row[4])},
            words(row[6]),
            words(row[5]),
            words(row[7])};
  } catch (const InvalidModel&) {
    return {};
  }
}

// The columns of a Row, in the order in which row_of takes them.
std::string rows(std::string_view which) {
  return text(
      "SELECT v.network, v.version, v.hash, v.target, v.bytes, v.row_hash, v.document, ifnull(p.parts, '') "
      "FROM versions v LEFT JOIN parts p ON p.network = v.network AND p.version = v.version ",
      which);
}
const std::string kAll = rows("");
// The newest that is deployed, else the newest.
const std::string kCurrent = rows(
    "WHERE v.network = ? "
    "ORDER BY EXISTS (SELECT 1 FROM deployments d WHERE d.network = v.network AND d.version = v.version) DESC, "
    "v.version DESC LIMIT 1");
const std::string kNewest = rows("WHERE v.network = ? ORDER BY v.version DESC LIMIT 1");
const std::string kNamed = rows("WHERE v.network = ? AND v.version = ?");

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

// With a file that should have that hash; empty: nothing.
std::string what_is_wrong(const std::string& path, const std::string& hash) {
  try {
    if (program::content_hash(program::map_file(path).bytes) == hash) return "";
    return text("files/", fs::path(path).filename().string(), " was altered");
  } catch (const Error& error) {
    return error.what();
  }
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
    database_ = std::make_unique<Database>(path_ + "/index.sqlite", kSchema);
    opened_by_ = ::getpid();
  }
  return *database_;
}

std::string Store::file(const Version& version) const { return text(path_, "/files/", version.hash, ".hetnn"); }
std::string Store::part(const std::string& hash) const { return program::part_path(path_ + "/files", hash); }

Version Store::add(const std::string& id, const program::Blob& image, std::optional<int64_t> version) {
  check_id(id);
  const std::string called = text("the executable for '", id, "'");
  return keep(id, program::unpack(image, called), image, called, version);
}

Version Store::add_file(const std::string& id, const std::string& path, std::optional<int64_t> version) {
  check_id(id);
  const std::string called = text("'", path, "'");
  return keep(id, program::read_program(path, called), program::map_file(path), called, version);
}

void Store::keep_file(const std::string& path, const std::string& hash, std::span<const std::byte> bytes) const {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!error && size == bytes.size() && program::content_hash(program::map_file(path).bytes) == hash) return;
  program::write_file(path, bytes);
}

Version Store::keep(const std::string& id, const program::Program& program, const program::Blob& image,
                    const std::string& called, std::optional<int64_t> version) {
  if (version && *version < 1) throw InvalidModel(text("a version must be 1 or more; got ", *version, "."));
  const Description described = describe(program, called);
  const program::Split split = program::split(program);
  Version out{.network = id,
              .hash = program::content_hash(split.image),
              .target = described.target,
              .bytes = std::ssize(split.image)};
  std::string parts;
  for (const auto& each : split.parts) {
    parts += text(parts.empty() ? "" : " ", each.hash, ':', each.bytes.size());
    out.bytes += std::ssize(each.bytes);
  }
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);  // held while files are written, so that no gc takes them for garbage
  if (!version) {
    const auto newest = db.run("SELECT max(version) FROM versions WHERE network = ?", {id});
    const auto* before = std::get_if<int64_t>(&newest[0][0]);
    version = before == nullptr ? 1 : *before + 1;
  } else if (const auto rows = db.run(kNamed, {id, *version}); !rows.empty()) {
    const Row row = row_of(rows[0]);
    // Before there were parts, an image was kept as it came.
    const bool same =
        row.version.hash == out.hash || (row.parts.empty() && row.version.hash == program::content_hash(image.bytes));
    if (same && row.sound()) return row.version;
    throw InvalidModel(text("'", id, "' has a version ", *version, " already, with another executable. Remove it, or ",
                            "choose another version."));
  }
  out.version = *version;
  for (const auto& each : split.parts) keep_file(part(each.hash), each.hash, each.bytes);
  keep_file(file(out), out.hash, split.image);
  sync_folder(path_ + "/files");
  db.run(
      "INSERT INTO versions (network, version, hash, target, bytes, row_hash, document) VALUES (?, ?, ?, ?, ?, ?, ?)",
      {id, out.version, out.hash, out.target, out.bytes, row_hash(out, described.document, parts), described.document});
  if (!parts.empty()) db.run("INSERT INTO parts (network, version, parts) VALUES (?, ?, ?)", {id, out.version, parts});
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
  for (const auto& row : database().run(
           "SELECT v.network, v.version, v.hash, v.bytes, ifnull(p.parts, '') FROM versions v LEFT JOIN parts p "
           "ON p.network = v.network AND p.version = v.version ORDER BY v.network, v.version")) {
    if (out.empty() || out.back().network != words(row[0])) {
      out.push_back({words(row[0]), {}, 0});
      counted.clear();
    }
    out.back().versions.push_back(number(row[1]));
    int64_t own = number(row[3]);
    for_parts(words(row[4]), [&](const std::string& hash, int64_t bytes) {
      own -= bytes;
      if (counted.insert(hash).second) out.back().bytes += bytes;
    });
    if (counted.insert(words(row[2])).second) out.back().bytes += own;
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

std::map<std::string, std::string> Store::places(const Version& version) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> out;
  for (const auto& row : database().run("SELECT device, place FROM places WHERE network = ? AND version = ?",
                                        {version.network, version.version}))
    out.emplace(words(row[0]), words(row[1]));
  return out;
}

void Store::deploy(const std::string& id, std::optional<int64_t> version, std::vector<std::string> devices,
                   const std::map<std::string, std::string>& places) {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);
  const Row row = find_row(db, id, version, kNewest);
  const std::vector<std::string> known = devices_of(row.document);
  // A part would mean nothing: the whole executable is opened, on every device that it runs on.
  if (!devices.empty() && std::set(devices.begin(), devices.end()) != std::set(known.begin(), known.end())) {
    throw InvalidModel(text(called(id, row.version.version), " runs on ", names(known), "; got ", names(devices),
                            ". A network is deployed whole: name all of its devices, or none."));
  }
  db.run("DELETE FROM deployments WHERE network = ?", {id});
  for (const std::string& device : known) {
    db.run("INSERT OR IGNORE INTO deployments (network, version, device) VALUES (?, ?, ?)",
           {id, row.version.version, device});
  }
  for (const auto& [device, place] : places) {
    if (std::find(known.begin(), known.end(), device) == known.end()) {
      throw InvalidModel(text(called(id, row.version.version), " runs on ", names(known), "; got a place of '", device,
                              "'. Name one of its devices."));
    }
    db.run("INSERT INTO places (network, version, device, place) VALUES (?, ?, ?, ?)",
           {id, row.version.version, device, place});
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
    rows = db.run(kAll);
  } catch (const InvalidModel& error) {
    out.push_back({"", 0, error.what()});
    return out;
  }
  std::map<std::string, std::string> wrong;  // with files, of which several versions may have one
  for (const auto& cells : rows) {
    const Row row = row_of(cells);
    const Version& version = row.version;
    if (!row.sound()) {
      out.push_back({version.network, version.version, "its row was altered"});
      continue;
    }
    const auto check = [&](const std::string& path, const std::string& hash) {
      const auto [at, fresh] = wrong.try_emplace(path);
      if (fresh) at->second = what_is_wrong(path, hash);
      if (!at->second.empty()) out.push_back({version.network, version.version, at->second});
    };
    check(file(version), version.hash);
    for_parts(row.parts, [&](const std::string& hash, int64_t) { check(part(hash), hash); });
  }
  return out;
}

Freed Store::gc() {
  const std::lock_guard lock(mutex_);
  Database& db = database();
  Transaction writing(db);  // nobody adds meanwhile
  std::set<std::string> named;
  for (const auto& row : db.run("SELECT DISTINCT hash FROM versions")) named.insert(words(row[0]) + ".hetnn");
  for (const auto& row : db.run("SELECT DISTINCT parts FROM parts")) {
    for_parts(words(row[0]), [&](const std::string& hash, int64_t) { named.insert(hash + ".weights"); });
  }
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
