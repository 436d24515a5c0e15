// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "ops/formats/file_format.h"

// Fields of frames in csv files, which may stand in double quotes.
namespace heddle::ops {

/// Cuts `line` into fields, without blanks around them. A field that begins with a quote ends at the first
/// separator behind the next quote, and keeps both; two quotes inside are one of its characters.
void CutQuotedFields(std::string_view line, const ReadOptions& options,
                     std::vector<std::string_view>* fields);

/// The lines of a text of whole lines, and their fields.
class QuotedLines {
 public:
  QuotedLines(std::string_view text, const ReadOptions& options);

  /// Goes to the next line; false at the end of the text.
  bool Next();
  std::string_view line() const { return line_; }  ///< Without its newline.
  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  bool CutPlainLine();
  const char* NextMark();
  void GoTo(const char* at);

  const ReadOptions& options_;
  const char* const end_;
  const bool may_be_plain_;
  const char separator_;
  std::string_view line_;
  std::vector<std::string_view> fields_;
  const char* next_ = nullptr;   // Where the next line begins.
  const char* block_ = nullptr;  // 64 bytes, fewer at the end of the text,
  uint64_t marks_ = 0;           // and which of them are separators or newlines that nobody has taken yet.
};

}  // namespace heddle::ops
