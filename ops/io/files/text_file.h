// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ops/io/files/files.h"

namespace heddle::ops {

/// The text of an input file: UTF-8 without its byte order mark. Offsets count from its first character.
class TextFile {
 public:
  /// kDataLoss says what else than text in lines it is: UTF-16, UTF-32, lines that end with carriage returns
  /// alone, or bytes among which are zeros. Carriage returns and zeros inside of double quotes are characters
  /// of a text.
  static Result<TextFile> Open(const std::string& path, Files& files);

  const std::string& path() const { return path_; }
  int64_t size() const { return file_->size() - start_; }
  /// As InputFile::Read.
  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const {
    return file_->Read(start_ + begin, count, buffer);
  }
  /// As those of InputFile.
  std::vector<InputFile::Part> parts() const { return file_->parts(); }
  void LeaveOut(const std::vector<InputFile::Beginning>& beginnings) { file_->LeaveOut(beginnings); }

 private:
  TextFile(const std::string& path, std::unique_ptr<InputFile> file) : path_(path), file_(std::move(file)) {}

  std::string path_;
  std::unique_ptr<InputFile> file_;
  int64_t start_ = 0;
};

/// The whole text. kDataLoss when it is longer than `most_bytes`.
Result<std::string> ReadWhole(const std::string& path, int64_t most_bytes, Files& files);

/// What is in memory of a text that is read from `begin` on.
class TextWindow {
 public:
  TextWindow(const TextFile& text, int64_t begin) : text_(text), begin_(begin) {}

  /// What is here and was not taken; valid until Lengthen().
  std::string_view rest() const { return window_.substr(at_); }
  void Take(size_t count) { at_ += count; }
  /// Where rest() begins in the text.
  int64_t offset() const { return begin_ + static_cast<int64_t>(at_); }
  /// Makes rest() longer, at most to `end` of the text. False where it ends there already, and when reading
  /// fails.
  bool Lengthen(int64_t end);
  const Status& status() const { return status_; }

 private:
  const TextFile& text_;
  CountedBytes buffer_;
  std::string_view window_;
  int64_t begin_;  // of the window
  size_t at_ = 0;  // in the window
  Status status_;
};

/// The lines of a text from `begin` on, one after the other.
class LineReader {
 public:
  explicit LineReader(const TextFile& text, int64_t begin = 0) : text_(text), window_(text, begin) {}

  /// The next line without its newline; valid until the next call. False at the end and when reading fails.
  bool Next(std::string_view* line);
  const Status& status() const { return window_.status(); }
  /// Where the line begins that Next would give.
  int64_t offset() const { return window_.offset(); }

 private:
  const TextFile& text_;
  TextWindow window_;
};

}  // namespace heddle::ops
