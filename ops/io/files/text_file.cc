// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/text_file.h"

#include <algorithm>

#include "core/text/text_encoding.h"

namespace heddle::ops {
namespace {

constexpr int64_t kPieceBytes = 1 << 18;

}  // namespace

Result<TextFile> TextFile::Open(const std::string& path, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, files.Open(path));
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view beginning,
                          file->Read(0, std::min(kPieceBytes, file->size()), &buffer));
  if (const auto foreign = FindForeignEncoding(beginning))
    return DataLoss("cannot read '{}': it is {}", path, foreign->name).WithNote(std::string(foreign->remedy));
  const size_t zero = beginning.find('\0');
  if (zero != std::string_view::npos && !IsInQuotes(beginning, zero))
    return DataLoss("cannot read '{}': it holds zero bytes, so it is no text", path)
        .WithNote("Heddle reads csv, libsvm, MatrixMarket and text (row column value) files");
  TextFile text(path, nullptr);
  text.start_ = static_cast<int64_t>(ByteOrderMarkBytes(beginning));
  text.file_ = std::move(file);
  return text;
}

Result<std::string> ReadWhole(const std::string& path, int64_t most_bytes, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, TextFile::Open(path, files));
  if (text.size() > most_bytes)
    return DataLoss("cannot read '{}': it has {} bytes, {} are the most", path, text.size(), most_bytes);
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, text.Read(0, text.size(), &buffer));
  return std::string(bytes);
}

bool TextWindow::Lengthen(int64_t end) {
  const auto had = static_cast<int64_t>(window_.size() - at_);
  const int64_t begin = offset();
  const int64_t count = std::min(std::max(kPieceBytes, 2 * had), end - begin);
  if (!status_.ok() || count <= had) return false;
  Result<std::string_view> piece = text_.Read(begin, count, &buffer_);
  if (!piece.ok()) {
    status_ = piece.status();
    return false;
  }
  window_ = *piece;
  begin_ = begin;
  at_ = 0;
  return true;
}

bool LineReader::Next(std::string_view* line) {
  for (size_t searched = 0;;) {
    const std::string_view rest = window_.rest();
    const size_t end = rest.find('\n', searched);
    if (end != std::string_view::npos) {
      *line = rest.substr(0, end);
      window_.Take(end + 1);
      return true;
    }
    searched = rest.size();
    if (window_.Lengthen(text_.size())) continue;
    if (!status().ok() || rest.empty()) return false;
    *line = rest;
    window_.Take(rest.size());
    return true;
  }
}

}  // namespace heddle::ops
