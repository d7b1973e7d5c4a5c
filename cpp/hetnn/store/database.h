// SQLite as the store needs it: one connection, kept statements, errors of hetnn. The one place that speaks to SQLite.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace hetnn::store {

using Cell = std::variant<int64_t, std::string>;

/// One connection, for one thread at a time. InvalidModel for a damaged file, DoesNotFit where the disk is full,
/// Unsupported for a schema that is newer than this program.
class Database {
 public:
  /// Opens the file, or makes it. Step k of `schema` takes a file from version k to the next; those of an older file
  /// that are missing are done.
  Database(std::string path, std::span<const std::string_view> schema);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs one statement. Its rows are texts and integers, columns in order.
  std::vector<std::vector<Cell>> run(std::string_view sql, const std::vector<Cell>& arguments = {});
  /// Rows that the last statement changed.
  int64_t changed() const;

 private:
  void close();
  sqlite3_stmt* prepared(std::string_view sql);
  [[noreturn]] void fail() const;

  std::string path_;
  sqlite3* connection_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

/// Takes the right to write, waiting for its turn; what was written is undone unless `commit` is called.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database* database_;
};

}  // namespace hetnn::store
