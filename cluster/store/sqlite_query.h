// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace heddle::cluster {

/// One prepared statement: bind in order, step, read columns in order.
class Query {
 public:
  Query(sqlite3* database, const char* text) : database_(database) {
    result_ = sqlite3_prepare_v2(database, text, -1, &statement_, nullptr);
  }
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& Bind(int64_t value) {
    if (result_ == SQLITE_OK) result_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Query& Bind(std::string_view text) {
    if (result_ == SQLITE_OK)
      result_ = sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                                  SQLITE_TRANSIENT);
    return *this;
  }
  Query& BindBytes(std::string_view bytes) {
    if (result_ == SQLITE_OK)
      result_ = sqlite3_bind_blob64(statement_, ++bound_, bytes.empty() ? "" : bytes.data(), bytes.size(),
                                    SQLITE_TRANSIENT);
    return *this;
  }
  /// True while there is a row.
  bool Step() {
    if (result_ != SQLITE_OK && result_ != SQLITE_ROW) return false;
    result_ = sqlite3_step(statement_);
    return result_ == SQLITE_ROW;
  }
  Status Run() {
    Step();
    return status();
  }
  Status status() const {
    if (result_ == SQLITE_OK || result_ == SQLITE_ROW || result_ == SQLITE_DONE) return OkStatus();
    if (result_ == SQLITE_FULL) return ResourceExhausted("job store: the disk is full");
    if (result_ == SQLITE_CORRUPT || result_ == SQLITE_NOTADB)
      return DataLoss("job store: '{}' is damaged: {}", sqlite3_db_filename(database_, "main"),
                      sqlite3_errmsg(database_))
          .WithNote(
              "'heddle admin restore' makes a folder of a backup; without one, a master begins with no "
              "jobs when the file is moved away");
    return ResourceExhausted("job store: {}", sqlite3_errmsg(database_));
  }
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string Bytes(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return data == nullptr ? ""
                           : std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int result_ = SQLITE_OK;
  int bound_ = 0;
};

/// Undone unless it was committed.
class Transaction {
 public:
  explicit Transaction(sqlite3* database) : database_(database) {
    status_ = Query(database, "BEGIN IMMEDIATE").Run();
  }
  ~Transaction() {
    if (!committed_ && status_.ok()) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  const Status& status() const { return status_; }
  Status Commit() {
    HEDDLE_RETURN_IF_ERROR(Query(database_, "COMMIT").Run());
    committed_ = true;
    return OkStatus();
  }

 private:
  sqlite3* database_;
  Status status_;
  bool committed_ = false;
};

}  // namespace heddle::cluster
