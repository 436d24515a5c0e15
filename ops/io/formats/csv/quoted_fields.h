// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "ops/io/formats/records.h"

// Records of frames in csv files, whose fields may stand in double quotes.
namespace heddle::ops {

/// Cuts a record into fields, as FieldCutter does.
void CutQuotedFields(std::string_view record, const ReadOptions& options,
                     std::vector<std::string_view>* fields);

/// The records of a text of whole records, and their fields.
class QuotedRecords {
 public:
  QuotedRecords(std::string_view text, const ReadOptions& options);

  /// Goes to the next record; false at the end of the text.
  bool Next();
  std::string_view record() const { return record_; }  ///< Without its newline.
  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  bool CutPlainRecord();
  const char* NextMark();
  void GoTo(const char* at);

  const ReadOptions& options_;
  const QuoteGrammar grammar_;
  const char* const end_;
  const bool may_be_plain_;
  const char separator_;
  std::string_view record_;
  std::vector<std::string_view> fields_;
  const char* next_ = nullptr;   // Where the next record begins.
  const char* block_ = nullptr;  // 64 bytes, fewer at the end of the text,
  uint64_t marks_ = 0;           // and which of them are separators or newlines that nobody has taken yet.
};

}  // namespace heddle::ops
