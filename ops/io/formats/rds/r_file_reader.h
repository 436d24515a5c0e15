// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/formats/rds/r_bytes.h"
#include "ops/io/formats/rds/r_file.h"

namespace heddle::ops {

/// Goes through the objects of a file of R once and keeps those that a matrix or table may be made of. A part
/// that refers to an earlier one does so by a number that counts symbols and environments, so that what is of
/// no interest, as functions are, is gone through as well.
///
/// Bounds for files that are damaged or made to do harm: objects inside of each other, objects, symbols, and
/// bytes of their names. All else grows with the bytes that are there.
class RFileReader {
 public:
  RFileReader(RFile* file, int64_t begin);
  /// The one object that begins there.
  Status Run();

 private:
  struct Flags {
    int code = 0;
    bool has_attributes = false;
    bool has_tag = false;
    int32_t reference = 0;  // Of kCodeReference, 0 where it follows.
  };
  // An object that was gone through: its number where it is kept, and of symbols theirs.
  struct Found {
    int32_t object = kNoObject;
    int32_t symbol = kNoObject;
  };

  Status TakeFlags(Flags* flags);
  Status Object(int depth, bool keep, Found* found);
  Status ObjectOf(const Flags& flags, int depth, bool keep, Found* found);
  Status Symbol(bool keep, Found* found);
  Status Reference(const Flags& flags, bool keep, Found* found);
  Status Pairs(Flags flags, int depth, bool keep, Found* found);
  Status Vector(const Flags& flags, int depth, bool keep, Found* found);
  Status Attributes(int depth, bool keep, int32_t object);
  Status Environment(int depth);
  Status Strings();
  Status Alternative(int depth, bool keep, Found* found);
  Status ReadSequence(const RObject& state, RObject* object);
  Status Bytecode(int depth);
  Status PairsOfBytecode(int code, int depth);
  Status TakeLength(int64_t* length);

  Status AddSymbol(std::string name);
  Status Add(bool keep, RType type, Found* found);
  void AppendChild(int32_t parent, int32_t child, int32_t* last);
  RObject& At(int32_t number) { return file_.objects_[static_cast<size_t>(number)]; }

  RFile& file_;
  RBytes bytes_;
  size_t name_bytes_ = 0;
};

}  // namespace heddle::ops
