// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "ops/io/files/files.h"

namespace heddle::ops {

/// A number of R's serialization at `bytes`.
template <typename T>
T LoadNumber(const char* bytes, bool is_little_endian) {
  T number;
  std::memcpy(&number, bytes, sizeof(T));
  if constexpr (sizeof(T) == 8)
    return is_little_endian ? number : static_cast<T>(__builtin_bswap64(static_cast<uint64_t>(number)));
  else
    return is_little_endian ? number : static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(number)));
}

/// A string of R as it stands in the file.
struct RString {
  uint32_t flags = 0;  ///< Among them its encoding.
  bool is_missing = false;
  std::string_view bytes;
};

/// The bytes of a file of R from a place on, read `window_bytes` at a time. What is taken is valid until the
/// next call.
class RBytes {
 public:
  static constexpr int64_t kManyBytes = int64_t{1} << 18;
  RBytes(const std::string& path, const InputFile& file, bool is_little_endian, int64_t offset,
         int64_t window_bytes = kManyBytes)
      : path_(path),
        file_(file),
        is_little_endian_(is_little_endian),
        offset_(offset),
        window_bytes_(window_bytes) {}

  int64_t offset() const { return offset_; }
  int64_t left() const { return file_.size() - offset_; }

  /// kDataLoss where the file ends before.
  Status Take(int64_t count, std::string_view* bytes);
  Status Skip(int64_t count);
  Status TakeInt(int32_t* number);
  /// The next object, which is a string.
  Status TakeString(RString* string);
  Status SkipString();

  Status Damaged(std::string_view what) const;

 private:
  Status TakeHeadOfString(RString* string, int64_t* length);

  const std::string& path_;
  const InputFile& file_;
  const bool is_little_endian_;
  int64_t offset_;
  const int64_t window_bytes_;
  CountedBytes buffer_;
  std::string_view window_;   // Bytes of the file
  int64_t window_begin_ = 0;  // from here on.
};

/// Codes of types in the flags of an object, as R has them (Rinternals.h and serialize.c).
enum RCode : int {
  kCodeSymbol = 1,
  kCodePairs = 2,
  kCodeClosure = 3,
  kCodeEnvironment = 4,
  kCodePromise = 5,
  kCodeCall = 6,
  kCodeSpecial = 7,
  kCodeBuiltin = 8,
  kCodeString = 9,
  kCodeLogical = 10,
  kCodeInteger = 13,
  kCodeDouble = 14,
  kCodeComplex = 15,
  kCodeTexts = 16,
  kCodeDots = 17,
  kCodeList = 19,
  kCodeExpressions = 20,
  kCodeBytecode = 21,
  kCodePointer = 22,
  kCodeWeakReference = 23,
  kCodeBytes = 24,
  kCodeS4 = 25,
  kCodeAlternative = 238,  ///< A vector in another form than one cell after the other.
  kCodePairsWithAttributes = 239,
  kCodeCallWithAttributes = 240,
  kCodeBaseEnvironment = 241,
  kCodeEmptyEnvironment = 242,
  kCodeSameCode = 243,  ///< In bytecode: a part that stood there before.
  kCodeNamedCode = 244,
  kCodePersistent = 247,
  kCodePackage = 248,
  kCodeNamespace = 249,
  kCodeBaseNamespace = 250,
  kCodeMissingArgument = 251,
  kCodeUnbound = 252,
  kCodeGlobalEnvironment = 253,
  kCodeNull = 254,
  kCodeReference = 255
};

}  // namespace heddle::ops
