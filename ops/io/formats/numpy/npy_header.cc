// SPDX-License-Identifier: Apache-2.0
// The header of an array: mark, version, length, and a Python dictionary like
// {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
#include <algorithm>
#include <charconv>
#include <optional>

#include "core/text/utf8.h"
#include "core/values/sizes.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/numpy/npy.h"

namespace heddle::ops {
namespace {

constexpr int64_t kMostHeaderBytes = int64_t{1} << 20;
constexpr size_t kMostIndexes = 64;
constexpr int64_t kBytesOfCharacter = 4;

// Takes the tokens of a dictionary of texts, booleans and tuples of numbers. Each Take is false, and takes
// nothing that matters, where something else comes next.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : rest_(text) {}

  bool Take(char character) {
    SkipBlanks();
    if (!rest_.starts_with(character)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeText(std::string* text) {
    SkipBlanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return false;
    *text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool TakeBoolean(bool* value) {
    SkipBlanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      *value = word == "True";
      rest_.remove_prefix(word.size());
      return true;
    }
    return false;
  }
  bool TakeSizes(std::vector<int64_t>* sizes) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      SkipBlanks();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0 || sizes->size() == kMostIndexes) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      Take('L');  // as Python 2 writes long numbers
      sizes->push_back(size);
      if (Take(',')) continue;
      return Take(')');
    }
    return true;
  }
  bool AtEnd() {
    SkipBlanks();
    return rest_.empty();
  }
  std::string_view rest() const { return rest_; }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && (IsBlank(rest_[0]) || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

// The kind of a cell: "<f8", "|b1", ">i4"; of texts "|S3", or "<U3" where a character takes 4 bytes.
bool SetKind(std::string_view text, bool is_text, NpyHeader* header) {
  if (text.size() < 3) return false;
  header->swapped = text[0] == '>';
  header->kind = text[1];
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), header->bytes);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (is_text) {
    if (header->kind == 'U') header->bytes = SaturatingProduct(header->bytes, kBytesOfCharacter);
    return header->bytes > 0 && (header->kind == 'S' || header->kind == 'U');
  }
  const int64_t bytes = header->bytes;
  switch (header->kind) {
    case 'b': return bytes == 1;
    case 'f': return bytes == 2 || bytes == 4 || bytes == 8;
    case 'i':
    case 'u': return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    default: return false;
  }
}

Status ReadDictionary(const std::string& name, std::string_view text, bool is_text, NpyHeader* header) {
  const Status damaged = DataLoss("cannot read '{}': its header is damaged", name);
  Dictionary dictionary(text);
  if (!dictionary.Take('{')) return damaged;
  std::string kind;
  bool has_kind = false, has_order = false, has_sizes = false;
  while (!dictionary.Take('}')) {
    std::string key;
    if (!dictionary.TakeText(&key) || !dictionary.Take(':')) return damaged;
    if (key == "descr") {
      if (!dictionary.TakeText(&kind))
        return DataLoss("cannot read '{}': its cells are records of several fields", name)
            .WithNote("save each field into a file of its own: numpy.save(\"FILE.npy\", array[\"FIELD\"])");
      has_kind = true;
    } else if (key == "fortran_order") {
      has_order = dictionary.TakeBoolean(&header->fortran);
      if (!has_order) return damaged;
    } else if (key == "shape") {
      has_sizes = dictionary.TakeSizes(&header->sizes);
      if (!has_sizes) return damaged;
    } else {
      return damaged;
    }
    if (!dictionary.Take(',')) {
      if (!dictionary.Take('}')) return damaged;
      break;
    }
  }
  if (!has_kind || !has_order || !has_sizes || !dictionary.AtEnd()) return damaged;
  if (SetKind(kind, is_text, header)) return OkStatus();
  return DataLoss("cannot read '{}': its cells have the type '{}'", name, ShownInLine(kind, 20))
      .WithNote(
          "Heddle reads integers, booleans and floats of up to 8 bytes; array.astype(\"float64\") makes "
          "such");
}

}  // namespace

Shape NpyHeader::shape() const {
  Shape shape{1, 1};
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& length = i == 0 ? shape.rows : shape.columns;
    length = SaturatingProduct(length, sizes[i]);
  }
  return shape;
}

namespace {

Result<NpyHeader> ReadHeader(const std::string& name, const InputFile& file, int64_t begin, int64_t end,
                             bool is_text) {
  constexpr int64_t kFixedBytes = 8;  // mark and version
  const Status cut = DataLoss("cannot read '{}': it is cut off inside of its header", name);
  CountedBytes buffer;
  const int64_t first_bytes = std::min(end - begin, kFixedBytes + 4);
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view first, file.Read(begin, first_bytes, &buffer));
  if (!first.starts_with(kNpyMark.substr(0, static_cast<size_t>(first_bytes))))
    return DataLoss("cannot read '{}': it is no npy file", name)
        .WithNote("numpy.save() writes such a file; format= says what else it is");
  if (first_bytes < kFixedBytes + 4) return cut;
  const auto byte = [&](size_t i) { return int64_t{static_cast<uint8_t>(first[i])}; };
  const int64_t version = byte(6);
  if (version < 1 || version > 3)
    return DataLoss("cannot read '{}': it is an npy file of version {}.{}", name, version, byte(7))
        .WithNote("Heddle reads versions 1, 2 and 3");
  const int64_t text_begin = begin + kFixedBytes + (version == 1 ? 2 : 4);
  int64_t text_bytes = byte(8) | byte(9) << 8;
  if (version > 1) text_bytes |= byte(10) << 16 | byte(11) << 24;
  if (text_bytes > end - text_begin) return cut;
  if (text_bytes > kMostHeaderBytes) return DataLoss("cannot read '{}': its header is damaged", name);
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view text, file.Read(text_begin, text_bytes, &buffer));
  NpyHeader header;
  HEDDLE_RETURN_IF_ERROR(ReadDictionary(name, text, is_text, &header));
  header.cells_begin = text_begin + text_bytes;
  const Shape shape = header.shape();
  if (shape.rows > kMostLength || shape.columns > kMostLength || shape.Cells() == INT64_MAX ||
      (shape.Cells() == 0 && std::max(shape.rows, shape.columns) > kMostLengthOfEmpty))
    return DataLoss("cannot read '{}': it is larger than a matrix can be", name);
  const int64_t bytes = SaturatingProduct(shape.Cells(), header.bytes), has = end - header.cells_begin;
  if (bytes > has)
    return DataLoss("cannot read '{}': it is cut off: its header says {} bytes of cells, it has {}", name,
                    bytes, has);
  if (bytes < has)
    return DataLoss("cannot read '{}': {} bytes follow the array", name, has - bytes)
        .WithNote("a file that Heddle reads holds one array; numpy.savez() writes several");
  return header;
}

}  // namespace

Result<NpyHeader> ReadNpyHeader(const std::string& name, const InputFile& file, int64_t begin, int64_t end) {
  return ReadHeader(name, file, begin, end, /*is_text=*/false);
}

Result<std::string> ReadNpyText(const std::string& name, const InputFile& file, size_t most) {
  HEDDLE_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(name, file, 0, file.size(), /*is_text=*/true));
  const int64_t character = header.kind == 'U' ? kBytesOfCharacter : 1;
  if (header.shape().Cells() != 1 || header.bytes / character > static_cast<int64_t>(most))
    return DataLoss("cannot read '{}': it is not the short text that it should be", name);
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, file.Read(header.cells_begin, header.bytes, &buffer));
  std::string text;
  for (int64_t at = header.swapped ? character - 1 : 0; at < header.bytes; at += character)
    if (bytes[static_cast<size_t>(at)] != '\0') text.push_back(bytes[static_cast<size_t>(at)]);
  return text;
}

}  // namespace heddle::ops
