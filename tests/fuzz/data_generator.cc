// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/data_generator.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "tests/fuzz/hostile.h"
#include "tests/fuzz/script_text.h"

namespace heddle::fuzz {
namespace {

std::string Number(Chooser& choose) {
  if (choose.Chance(30)) return fmt::format("{}", choose.Between(-9, 9));
  return fmt::format("{}", static_cast<double>(choose.Between(-1000000, 1000000)) / 1024);
}

std::string Csv(int64_t rows, int64_t columns, Chooser& choose, DataFile* file) {
  const std::string separator = choose.Pick({",", ",", ";", "\t", " ", "||"});
  const bool header = choose.Chance(25);
  std::string text;
  for (int64_t row = header ? -1 : 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      text += (column > 0 ? separator : "") + (row < 0 ? fmt::format("C{}", column + 1) : Number(choose));
    text += choose.Chance(2) ? "\r\n" : "\n";
  }
  if (choose.Chance(50))
    file->read_options = fmt::format(", format=\"csv\", header={}, sep=\"{}\"", header ? "TRUE" : "FALSE",
                                     separator == "\t" ? "\\t" : separator);
  return text;
}

std::string Libsvm(int64_t rows, int64_t columns, Chooser& choose, DataFile* file) {
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    text += Number(choose);
    for (int64_t column = 1; column <= columns; ++column)
      if (choose.Chance(40)) text += fmt::format(" {}:{}", column, Number(choose));
    text += "\n";
  }
  if (choose.Chance(50)) file->read_options = fmt::format(", format=\"libsvm\", cols={}", columns);
  return text;
}

std::string Entries(int64_t rows, int64_t columns, bool values, bool lower, Chooser& choose) {
  std::string text;
  for (int64_t row = 1; row <= rows; ++row)
    for (int64_t column = 1; column <= (lower ? std::min(row, columns) : columns); ++column)
      if (choose.Chance(40))
        text += fmt::format("{} {}{}\n", row, column, values ? " " + Number(choose) : "");
  return text;
}

std::string MatrixMarket(int64_t rows, int64_t columns, Chooser& choose) {
  const std::string field = choose.Pick({"real", "integer", "pattern", "complex", "Real"});
  const std::string symmetry =
      choose.Pick({"general", "general", "symmetric", "skew-symmetric", "hermitian"});
  const bool lower = symmetry != "general";
  if (lower) columns = rows;
  if (choose.Chance(25)) {
    std::string text =
        fmt::format("%%MatrixMarket matrix array {} {}\n{} {}\n", field, symmetry, rows, columns);
    for (int64_t i = rows * columns; i > 0; --i) text += Number(choose) + "\n";
    return text;
  }
  const std::string entries = Entries(rows, columns, field != "pattern", lower, choose);
  return fmt::format("%%MatrixMarket matrix coordinate {} {}\n% a comment\n{} {} {}\n", field, symmetry, rows,
                     columns, std::count(entries.begin(), entries.end(), '\n')) +
         entries;
}

}  // namespace

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) return bytes;
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

namespace {

std::string Metadata(const std::string& format, int64_t rows, int64_t columns, Chooser& choose) {
  return fmt::format(
      "{{\n    \"data_type\": \"matrix\",\n    \"value_type\": \"double\",\n    \"rows\": {},\n    \"cols\": {},\n"
      "    \"nnz\": {},\n    \"format\": \"{}\",\n    \"author\": \"somebody\"{}\n}}\n",
      rows, columns, choose.Pick({"-1", "3", "1000000"}), format,
      format == "csv" ? ",\n    \"header\": false,\n    \"sep\": \",\"" : "");
}

void MutateFields(std::string* text, Chooser& choose) {
  std::vector<std::string> tokens = SplitTokens(*text);
  std::vector<size_t> numbers;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (IsNumberToken(tokens[i])) numbers.push_back(i);
  if (numbers.empty()) return;
  // The first numbers are often sizes.
  const size_t at =
      choose.Chance(30) ? numbers[choose.Below(std::min<size_t>(3, numbers.size()))] : choose.Pick(numbers);
  tokens[at] = choose.Chance(60) ? HostileField(choose) : HostileNumber(choose);
  *text = JoinTokens(tokens);
}

void MutateLinesOfData(std::string* text, Chooser& choose) {
  std::vector<std::string> lines = SplitLines(*text);
  if (lines.empty()) return;
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(choose.Below(lines.size()));
  switch (choose.Below(6)) {
    case 0: lines.erase(at); break;
    case 1: {
      const std::string line = *at;
      lines.insert(at, line);
      break;
    }
    case 2: std::swap(*at, lines[choose.Below(lines.size())]); break;
    case 3: lines.insert(at, choose.Pick({"\n", " \n", "\r\n", "#\n", "%\n", ",\n", "0 0 0\n"})); break;
    case 4: *at += *at; break;
    default: at->insert(choose.Below(at->size() + 1), HostileField(choose));
  }
  *text = JoinTokens(lines);
}

void MutateBytesOfData(std::string* bytes, Chooser& choose) {
  const size_t at = choose.Below(bytes->size() + 1);
  switch (choose.Below(9)) {
    case 0: bytes->resize(at); break;
    case 1:
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>(choose.Below(256));
      break;
    case 2: bytes->insert(0, choose.Pick({"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF", " ", "\n"})); break;
    case 3: std::replace(bytes->begin(), bytes->end(), '\n', '\r'); break;
    case 4: bytes->insert(at, 1 + choose.Below(3), '\0'); break;
    case 5:
      bytes->append(static_cast<size_t>(choose.PickNumber({1, 100, 70000})), choose.Chance(50) ? '\0' : ' ');
      break;
    case 6: bytes->erase(at, 1 + choose.Below(10)); break;
    case 7:
      if (!bytes->empty() && bytes->back() == '\n') bytes->pop_back();
      break;
    default: bytes->insert(at, choose.Pick({"\xC3", "\xF0\x9F\x98", "\x80\x80", "\xED\xA0\x80"}));
  }
}

void MutateMetadata(std::string* metadata, Chooser& choose) {
  switch (choose.Below(7)) {
    case 0: MutateFields(metadata, choose); break;
    case 1: MutateBytesOfData(metadata, choose); break;
    case 2: {
      const auto depth = static_cast<size_t>(choose.PickNumber({10, 1000, 100000}));
      const bool object = choose.Chance(50);
      std::string value;
      for (size_t i = 0; i < depth; ++i) value += object ? "{\"a\":" : "[";
      value += "1";
      for (size_t i = 0; i < depth; ++i) value += object ? "}" : "]";
      *metadata = choose.Chance(50) ? value : "{\"rows\": 3, \"description\": " + value + "}";
      break;
    }
    case 3:
      *metadata =
          choose.Pick({"", " ", "null", "[]", "{}", "3", "{\"rows\": 3", "{\"rows\": 3, \"rows\": 4}"});
      break;
    case 4:
      *metadata = fmt::format("{{\"{}\": {}, \"format\": \"{}\"}}",
                              choose.Pick({"rows", "cols", "nnz", "header", "sep", "default", "naStrings",
                                           "data_type", "value_type", "fill", "privacy", "schema"}),
                              choose.Pick({"-1", "1e300", "9223372036854775807", "18446744073709551616",
                                           "0.5", "\"\"", "\"scalar\"", "\"frame\"", "true", "null", "[1]",
                                           "\"NA\"", "\"\\u00b7\"", "\"\\ud800\"", "\"1e5\""}),
                              choose.Pick({"csv", "text", "mm", "libsvm", "binary", "nonsense"}));
      break;
    default: MutateLinesOfData(metadata, choose);
  }
}

}  // namespace

DataFile GenerateData(Chooser& choose) {
  DataFile file;
  const int64_t rows = choose.PickNumber({1, 2, 3, 7, 70, 400});
  const int64_t columns = choose.PickNumber({1, 2, 3, 5, 20});
  const std::string format = choose.Pick({"csv", "csv", "libsvm", "mm", "text"});
  if (format == "csv") {
    file.bytes = Csv(rows, columns, choose, &file);
  } else if (format == "libsvm") {
    file.bytes = Libsvm(rows, columns, choose, &file);
  } else if (format == "mm") {
    file.bytes = MatrixMarket(rows, columns, choose);
  } else {
    file.bytes = Entries(rows, columns, true, false, choose);
    file.read_options = fmt::format(", format=\"text\", rows={}, cols={}", rows, columns);
  }
  file.name = "data" + choose.Pick({"", ".csv", ".txt", ".mtx", ".libsvm", ".ijv", ".tsv"});
  if (choose.Chance(30)) {
    file.metadata = Metadata(format, rows, columns, choose);
    if (choose.Chance(70)) file.read_options.clear();
  }
  if (choose.Chance(10))
    file.read_options = ", format=\"" + choose.Pick({"csv", "text", "mm", "libsvm"}) + "\"";
  if (choose.Chance(15)) {
    file.bytes = Gzip(file.bytes);
    if (choose.Chance(60)) file.name += ".gz";
  }
  return file;
}

void MutateData(DataFile* file, Chooser& choose) {
  for (size_t changes = choose.Chance(60) ? 1 : choose.Below(5); changes > 0; --changes) {
    switch (choose.Below(8)) {
      case 0:
      case 1: MutateFields(&file->bytes, choose); break;
      case 2:
      case 3: MutateLinesOfData(&file->bytes, choose); break;
      case 4:
      case 5: MutateBytesOfData(&file->bytes, choose); break;
      case 6:
        if (!file->metadata.empty() || choose.Chance(20)) MutateMetadata(&file->metadata, choose);
        break;
      default: MutateFields(&file->read_options, choose);
    }
  }
}

std::string ScriptThatReads(const DataFile& file, Chooser& choose) {
  std::string script = fmt::format("X = read(\"{}\"{})\n", file.name, file.read_options);
  script += "print(nrow(X) + \" \" + ncol(X))\nprint(sum(X) + \" \" + min(X) + \" \" + max(X))\n";
  if (choose.Chance(50)) script += "print(toString(X, rows=10, cols=10, decimal=14))\n";
  if (choose.Chance(30)) script += "print(toString(colSums(X * 2), decimal=6) + sum(t(X) %*% X))\n";
  for (const char* format : {"csv", "text", "mm", "libsvm"})
    if (choose.Chance(30)) script += fmt::format("write(X, \"again.{0}\", format=\"{0}\")\n", format);
  if (choose.Chance(20))
    script +=
        "write(X, \"again.csv\", format=\"csv\")\nY = read(\"again.csv\")\nprint(sum(X == Y) + \" \" + length(X))\n";
  return script;
}

}  // namespace heddle::fuzz
