// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/io/files/files.h"
#include "ops/io/formats/file_format.h"

// Files of R: what its serialize() writes (R Internals, section "Serialization Formats"), which saveRDS()
// puts into a file as it is and save() behind a mark of its own.
namespace heddle::ops {

/// The types that are told apart; functions, calls and the like are read over.
enum class RType : uint8_t {
  kNull,
  kSymbol,
  kPairs,  ///< A list of pairs of a name and a value, as attributes and workspaces are.
  kLogical,
  kInteger,
  kDouble,
  kComplex,
  kTexts,
  kList,
  kBytes,
  kS4,
  kFunction,
  kEnvironment,
  kCall,
  kExpressions,
  kPointer,
  kOther  ///< A vector that only the package which has made it can read.
};

/// Where the cells of a vector are.
enum class RStorage : uint8_t {
  kInFile,         ///< One after the other from `begin` on.
  kSequence,       ///< `first`, `first + step` and so on: 1:n.
  kNumbersAsTexts  ///< Texts of the numbers of the vector `first_child`: as.character(1:n).
};

constexpr int32_t kNoObject = -1;

/// An object of a file. Its cells stay in the file. Others are named by their number in the file.
struct RObject {
  RType type = RType::kNull;
  RStorage storage = RStorage::kInFile;
  int32_t name = kNoObject;  ///< Of a value in pairs: the number of the symbol that is its name.
  int32_t first_child = kNoObject;
  int32_t next = kNoObject;  ///< Behind it in what it is a part of.
  int32_t first_attribute = kNoObject;
  int64_t length = 0;  ///< Of a vector its cells, of a list its elements.
  int64_t begin = 0;   ///< Of a vector its place in the file, of a symbol and of kOther a number of a symbol.
  double first = 0, step = 0;
};

/// A file of R, whose objects have been looked through once. Any number of threads may read it.
class RFile {
 public:
  /// Finds all objects that a matrix or table may be made of. kDataLoss where it is no file of R, is packed
  /// or written in a way that Heddle does not read, or is damaged; all that it says of sizes fits what is
  /// there.
  static Result<RFile> Open(const ReadOptions& options, Files& files);

  const std::string& path() const { return path_; }
  const InputFile& bytes() const { return *bytes_; }
  /// What save() wrote: pairs of a name and a value.
  bool is_workspace() const { return is_workspace_; }
  /// Numbers are little endian, as serialize(xdr = FALSE) writes them on most machines.
  bool is_little_endian() const { return is_little_endian_; }
  /// The encoding of texts that do not say theirs, as version 3 names it; "": nobody knows.
  const std::string& native_encoding() const { return native_encoding_; }

  const RObject& root() const { return At(root_); }
  /// The parts of a list, of pairs, and of the attributes of an object: from the first on; nullptr: no more.
  const RObject* FirstChild(const RObject& object) const { return Find(object.first_child); }
  const RObject* Next(const RObject& object) const { return Find(object.next); }
  /// nullptr where the object has no such attribute.
  const RObject* Attribute(const RObject& object, std::string_view name) const;
  /// The name of a value in pairs; "" where it has none.
  std::string_view NameOf(const RObject& object) const { return SymbolAt(object.name); }
  /// What a symbol is called, or the class of a vector of kOther.
  std::string_view SymbolOf(const RObject& object) const { return SymbolAt(object.begin); }

  Status Damaged(std::string_view what) const;

 private:
  friend class RFileReader;

  const RObject& At(int32_t number) const { return objects_[static_cast<size_t>(number)]; }
  std::string_view SymbolAt(int64_t number) const {
    return number < 0 ? std::string_view() : std::string_view(symbols_[static_cast<size_t>(number)]);
  }
  const RObject* Find(int32_t number) const { return number == kNoObject ? nullptr : &At(number); }

  std::string path_;
  std::shared_ptr<const InputFile> bytes_;
  bool is_workspace_ = false;
  bool is_little_endian_ = false;
  std::string native_encoding_;
  std::deque<RObject> objects_;
  std::vector<std::string> symbols_;  // Of all that later parts of the file refer to; "": not a symbol.
  int32_t root_ = kNoObject;
};

constexpr std::string_view kRdsMark("X\n\0\0\0", 5);  // of saveRDS()

/// Whether a file begins as one of R: R's own mark, or, where the name ends as files of R do, also one that
/// is packed or written in another way, which the reader names.
Result<bool> IsRds(const std::string& path, const InputFile& file);

}  // namespace heddle::ops
