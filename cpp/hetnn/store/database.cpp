// SQLite as the store needs it.
#include "hetnn/store/database.h"

#include <sqlite3.h>

#include "hetnn/base/error.h"

namespace hetnn::store {
namespace {

constexpr int kApplication = 0x6865746e;  // "hetn", in the file's header
constexpr int kWait_ms = 60'000;          // for another writer's turn to end

int64_t number(const std::vector<std::vector<Cell>>& rows) { return std::get<int64_t>(rows.at(0).at(0)); }

}  // namespace

Database::Database(std::string path, std::span<const std::string_view> schema) : path_(std::move(path)) {
  try {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path_.c_str(), &connection_, flags, nullptr) != SQLITE_OK) fail();
    sqlite3_busy_timeout(connection_, kWait_ms);
    sqlite3_extended_result_codes(connection_, 1);
    run("PRAGMA journal_mode = WAL");
    run("PRAGMA synchronous = FULL");  // a commit that was answered outlives the machine
    run("PRAGMA foreign_keys = ON");
    const int64_t newest = std::ssize(schema);
    const auto version_of = [&] {
      const int64_t application = number(run("PRAGMA application_id")), version = number(run("PRAGMA user_version"));
      if (application == 0 && version == 0 && number(run("SELECT count(*) FROM sqlite_schema")) == 0) return version;
      if (application != kApplication)
        throw InvalidModel(text("'", path_, "' is a database, but no store of hetnn. Name another folder."));
      if (version < 1) throw InvalidModel(text("the store '", path_, "' is damaged: it is of version ", version, "."));
      if (version > newest) {
        throw Unsupported(text("the store '", path_, "' is of version ", version, "; this hetnn knows versions up to ",
                               newest, ". Use a newer hetnn."));
      }
      return version;
    };
    if (version_of() == newest) return;
    Transaction writing(*this);
    // Another process may have been quicker.
    for (int64_t k = version_of(); k < newest; ++k) {
      const std::string step(schema[static_cast<size_t>(k)]);
      if (sqlite3_exec(connection_, step.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
    }
    run(text("PRAGMA application_id = ", kApplication));
    run(text("PRAGMA user_version = ", newest));
    writing.commit();
  } catch (...) {
    close();
    throw;
  }
}

Database::~Database() { close(); }

void Database::close() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  statements_.clear();
  sqlite3_close_v2(connection_);
  connection_ = nullptr;
}

void Database::fail() const {
  const int code = connection_ == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(connection_);
  const std::string what = connection_ == nullptr ? "no memory" : sqlite3_errmsg(connection_);
  const std::string said = text("the store '", path_, "' failed: ", what);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw InvalidModel(text(said, ". It is damaged; put back a copy, or add its networks to a new store."));
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      throw DoesNotFit(text(said, ". Make room, then do it again; nothing was changed."));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw DoesNotFit(text(said, ". Another writer held it for ", kWait_ms / 1000, " s; do it again."));
    case SQLITE_IOERR:
      throw DoesNotFit(text(said, " (", sqlite3_errstr(code), "). Check the disk and the space left."));
    default:
      throw InvalidModel(text(said, ". Check the folder and its rights."));
  }
}

sqlite3_stmt* Database::prepared(std::string_view sql) {
  if (const auto at = statements_.find(sql); at != statements_.end()) return at->second;
  sqlite3_stmt* out = nullptr;
  const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &out, nullptr);
  if (code != SQLITE_OK) fail();
  return statements_.emplace(sql, out).first->second;
}

std::vector<std::vector<Cell>> Database::run(std::string_view sql, const std::vector<Cell>& arguments) {
  sqlite3_stmt* statement = prepared(sql);
  for (size_t k = 0; k < arguments.size(); ++k) {
    const int at = static_cast<int>(k) + 1;
    if (const auto* integer = std::get_if<int64_t>(&arguments[k])) {
      sqlite3_bind_int64(statement, at, *integer);
    } else {
      const auto& words = std::get<std::string>(arguments[k]);
      sqlite3_bind_text64(statement, at, words.data(), words.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
  }
  std::vector<std::vector<Cell>> rows;
  int code = 0;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    auto& row = rows.emplace_back();
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
      if (sqlite3_column_type(statement, column) == SQLITE_INTEGER) {
        row.emplace_back(static_cast<int64_t>(sqlite3_column_int64(statement, column)));
      } else {
        const auto* words = reinterpret_cast<const char*>(sqlite3_column_blob(statement, column));
        const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
        row.emplace_back(words == nullptr ? std::string() : std::string(words, size));
      }
    }
  }
  if (code != SQLITE_DONE) {
    try {
      fail();
    } catch (...) {
      sqlite3_reset(statement);
      throw;
    }
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return rows;
}

int64_t Database::changed() const { return sqlite3_changes(connection_); }

Transaction::Transaction(Database& database) : database_(&database) { database.run("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (database_ == nullptr) return;
  try {
    database_->run("ROLLBACK");
  } catch (const Error&) {  // SQLite has rolled back by itself
  }
}

void Transaction::commit() {
  database_->run("COMMIT");
  database_ = nullptr;
}

}  // namespace hetnn::store
