// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Objects of R as its serialize() writes them: each function gives the bytes of one, and those of others are
/// made of them. Symbols are written anew each time, which R reads as well.
namespace heddle::testing_support::r {

constexpr int32_t kNaInteger = INT32_MIN;
inline const double kNaDouble = std::bit_cast<double>(uint64_t{0x7FF00000000007A2});
/// In the flags of an object and of a text.
constexpr int32_t kHasAttributes = 0x200, kHasTag = 0x400, kIsObject = 0x100;
constexpr int32_t kLatin1 = 1 << 14, kUtf8 = 1 << 15, kAscii = 1 << 18;

inline std::string Int(int32_t number) {
  const auto bits = static_cast<uint32_t>(number);
  return {static_cast<char>(bits >> 24), static_cast<char>(bits >> 16), static_cast<char>(bits >> 8),
          static_cast<char>(bits)};
}
inline std::string Wide(uint64_t bits) {
  return Int(static_cast<int32_t>(bits >> 32)) + Int(static_cast<int32_t>(bits));
}

/// Name and object.
using Pairs = std::vector<std::pair<std::string, std::string>>;

inline std::string Text(std::string_view text, int32_t encoding = kUtf8) {
  return Int(9 | encoding) + Int(static_cast<int32_t>(text.size())) + std::string(text);
}
inline std::string Missing() { return Int(9) + Int(-1); }
inline std::string Symbol(std::string_view name) { return Int(1) + Text(name, kAscii); }
inline std::string Null() { return Int(254); }
/// A list of pairs; also attributes, and what save() writes.
inline std::string PairsOf(const Pairs& pairs) {
  std::string bytes;
  for (const auto& [name, object] : pairs) bytes += Int(2 | kHasTag) + Symbol(name) + object;
  return bytes + Null();
}

inline std::string Vector(int32_t code, int32_t length, const std::string& cells, const Pairs& attributes) {
  const int32_t flags = attributes.empty() ? 0 : kHasAttributes;
  return Int(code | flags) + Int(length) + cells + (attributes.empty() ? "" : PairsOf(attributes));
}
inline std::string Integers(const std::vector<int32_t>& numbers, const Pairs& attributes = {},
                            int32_t code = 13) {
  std::string cells;
  for (const int32_t number : numbers) cells += Int(number);
  return Vector(code, static_cast<int32_t>(numbers.size()), cells, attributes);
}
inline std::string Logicals(const std::vector<int32_t>& numbers, const Pairs& attributes = {}) {
  return Integers(numbers, attributes, 10);
}
inline std::string Doubles(const std::vector<double>& numbers, const Pairs& attributes = {}) {
  std::string cells;
  for (const double number : numbers) cells += Wide(std::bit_cast<uint64_t>(number));
  return Vector(14, static_cast<int32_t>(numbers.size()), cells, attributes);
}
/// A vector of texts that are written by Text() and Missing().
inline std::string TextVector(const std::vector<std::string>& texts, const Pairs& attributes = {}) {
  std::string cells;
  for (const std::string& text : texts) cells += text;
  return Vector(16, static_cast<int32_t>(texts.size()), cells, attributes);
}
inline std::string Texts(const std::vector<std::string>& texts, const Pairs& attributes = {}) {
  std::vector<std::string> written;
  for (const std::string& text : texts) written.push_back(Text(text));
  return TextVector(written, attributes);
}
/// Integers of 64 bits, as the package bit64 keeps them in doubles.
inline std::string WideIntegers(const std::vector<int64_t>& numbers) {
  std::string cells;
  for (const int64_t number : numbers) cells += Wide(static_cast<uint64_t>(number));
  return Vector(14, static_cast<int32_t>(numbers.size()), cells, {{"class", Texts({"integer64"})}});
}
inline std::string List(const std::vector<std::string>& objects, const Pairs& attributes = {}) {
  std::string cells;
  for (const std::string& object : objects) cells += object;
  return Vector(19, static_cast<int32_t>(objects.size()), cells, attributes);
}
inline std::string S4(const Pairs& slots) { return Int(25 | kHasAttributes) + PairsOf(slots); }

inline Pairs Dim(const std::vector<int32_t>& sizes) { return {{"dim", Integers(sizes)}}; }
/// Row names that R has counted.
inline std::string CountedRows(int32_t rows) { return Integers({kNaInteger, -rows}); }
/// A data frame; columns are names and vectors.
inline std::string DataFrame(const Pairs& columns, const std::string& row_names,
                             const std::vector<std::string>& classes = {"data.frame"}) {
  std::vector<std::string> names, vectors;
  for (const auto& [name, vector] : columns) {
    names.push_back(name);
    vectors.push_back(vector);
  }
  return List(vectors, {{"names", Texts(names)}, {"class", Texts(classes)}, {"row.names", row_names}});
}
inline std::string Factor(const std::vector<int32_t>& codes, const std::vector<std::string>& levels) {
  return Integers(codes, {{"levels", Texts(levels)}, {"class", Texts({"factor"})}});
}
/// A vector in another form: its class, and what only that knows.
inline std::string Alternative(std::string_view name, std::string_view package, const std::string& state,
                               const Pairs& attributes = {}) {
  return Int(238) + Int(2) + Symbol(name) + Int(2) + Symbol(package) + Int(2) + Integers({13}) + Null() +
         state + (attributes.empty() ? Null() : PairsOf(attributes));
}
/// n numbers from `first` on.
inline std::string Sequence(double count, double first, double step,
                            std::string_view kind = "compact_intseq") {
  return Alternative(kind, "base", Doubles({count, first, step}));
}
/// A pair whose second half is no list.
inline std::string Dotted(const std::string& first, const std::string& second) {
  return Int(2) + first + second;
}

/// What saveRDS() puts before an object, and save() before pairs.
inline std::string Head(std::string_view native = "UTF-8") {
  return "X\n" + Int(3) + Int(0x40202) + Int(0x30500) + Int(static_cast<int32_t>(native.size())) +
         std::string(native);
}
inline std::string HeadOfVersion2() { return "X\n" + Int(2) + Int(0x30600) + Int(0x20300); }
inline std::string Rds(const std::string& object) { return Head() + object; }
inline std::string Workspace(const Pairs& objects) { return "RDX3\n" + Head() + PairsOf(objects); }

/// A sparse matrix of the package Matrix, column by column: where columns begin, rows, cells.
inline std::string ColumnSparse(const std::string& name, const std::vector<int32_t>& sizes,
                                const std::vector<int32_t>& ends, const std::vector<int32_t>& rows,
                                const std::vector<double>& cells) {
  return S4({{"i", Integers(rows)},
             {"p", Integers(ends)},
             {"Dim", Integers(sizes)},
             {"Dimnames", List({Null(), Null()})},
             {"x", Doubles(cells)},
             {"factors", List({})},
             {"class", Texts({name}, {{"package", Texts({"Matrix"})}})}});
}

}  // namespace heddle::testing_support::r
