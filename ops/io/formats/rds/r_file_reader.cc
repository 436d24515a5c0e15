// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_file_reader.h"

#include <cmath>
#include <utility>

namespace heddle::ops {
namespace {

constexpr int kMostDepth = 500;
constexpr size_t kMostObjects = size_t{1} << 20;
constexpr size_t kMostSymbols = size_t{1} << 20;
constexpr int64_t kMostBytesOfSymbol = 10'000;  // R has no longer ones.
constexpr size_t kMostNameBytes = size_t{1} << 24;

bool IsOfPairs(int code) {
  return code == kCodePairs || code == kCodeCall || code == kCodeClosure || code == kCodePromise ||
         code == kCodeDots;
}

RType TypeOf(int code) {
  switch (code) {
    case kCodeSymbol: return RType::kSymbol;
    case kCodePairs: return RType::kPairs;
    case kCodeLogical: return RType::kLogical;
    case kCodeInteger: return RType::kInteger;
    case kCodeDouble: return RType::kDouble;
    case kCodeComplex: return RType::kComplex;
    case kCodeTexts: return RType::kTexts;
    case kCodeList: return RType::kList;
    case kCodeBytes: return RType::kBytes;
    case kCodeS4: return RType::kS4;
    case kCodeClosure:
    case kCodeSpecial:
    case kCodeBuiltin:
    case kCodeBytecode: return RType::kFunction;
    case kCodeCall:
    case kCodePromise:
    case kCodeDots: return RType::kCall;
    case kCodeExpressions: return RType::kExpressions;
    case kCodeNull: return RType::kNull;
    case kCodeEnvironment:
    case kCodeBaseEnvironment:
    case kCodeEmptyEnvironment:
    case kCodeGlobalEnvironment:
    case kCodePackage:
    case kCodeNamespace:
    case kCodeBaseNamespace: return RType::kEnvironment;
    case kCodePointer:
    case kCodeWeakReference:
    case kCodePersistent: return RType::kPointer;
    default: return RType::kOther;
  }
}

int64_t BytesOfCell(int code) {
  switch (code) {
    case kCodeLogical:
    case kCodeInteger: return 4;
    case kCodeDouble: return 8;
    case kCodeComplex: return 16;
    default: return 1;
  }
}

}  // namespace

RFileReader::RFileReader(RFile* file, int64_t begin)
    : file_(*file), bytes_(file->path_, *file->bytes_, file->is_little_endian_, begin) {}

Status RFileReader::Run() {
  Found found;
  HEDDLE_RETURN_IF_ERROR(Object(0, /*keep=*/true, &found));
  file_.root_ = found.object;
  return OkStatus();
}

Status RFileReader::TakeFlags(Flags* flags) {
  int32_t number = 0;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
  const auto bits = static_cast<uint32_t>(number);
  flags->code = static_cast<int>(bits & 255);
  flags->has_attributes = (bits & 0x200) != 0;
  flags->has_tag = (bits & 0x400) != 0;
  flags->reference = static_cast<int32_t>(bits >> 8);
  return OkStatus();
}

Status RFileReader::Add(bool keep, RType type, Found* found) {
  if (!keep) return OkStatus();
  if (file_.objects_.size() >= kMostObjects)
    return DataLoss("cannot read '{}': it holds more than {} objects", file_.path_, kMostObjects);
  found->object = static_cast<int32_t>(file_.objects_.size());
  RObject& object = file_.objects_.emplace_back();
  object.type = type;
  if (type == RType::kOther) object.begin = kNoObject;
  return OkStatus();
}

void RFileReader::AppendChild(int32_t parent, int32_t child, int32_t* last) {
  if (child == kNoObject || parent == kNoObject) return;
  (*last == kNoObject ? At(parent).first_child : At(*last).next) = child;
  *last = child;
}

Status RFileReader::AddSymbol(std::string name) {
  name_bytes_ += name.size();
  if (file_.symbols_.size() >= kMostSymbols || name_bytes_ > kMostNameBytes)
    return DataLoss("cannot read '{}': it holds too many names", file_.path_);
  file_.symbols_.push_back(std::move(name));
  return OkStatus();
}

Status RFileReader::Object(int depth, bool keep, Found* found) {
  Flags flags;
  HEDDLE_RETURN_IF_ERROR(TakeFlags(&flags));
  return ObjectOf(flags, depth, keep, found);
}

Status RFileReader::ObjectOf(const Flags& flags, int depth, bool keep, Found* found) {
  if (depth > kMostDepth)
    return DataLoss("cannot read '{}': its objects are inside of each other, more than {}", file_.path_,
                    kMostDepth);
  if (IsOfPairs(flags.code)) return Pairs(flags, depth, keep, found);
  switch (flags.code) {
    case kCodeNull:
    case kCodeEmptyEnvironment:
    case kCodeBaseEnvironment:
    case kCodeGlobalEnvironment:
    case kCodeBaseNamespace:
    case kCodeUnbound:
    case kCodeMissingArgument: return Add(keep, TypeOf(flags.code), found);
    case kCodeReference: return Reference(flags, keep, found);
    case kCodeSymbol: return Symbol(keep, found);
    case kCodePersistent:
    case kCodePackage:
    case kCodeNamespace:
      HEDDLE_RETURN_IF_ERROR(Strings());
      HEDDLE_RETURN_IF_ERROR(AddSymbol(""));
      return Add(keep, TypeOf(flags.code), found);
    case kCodeEnvironment:
      HEDDLE_RETURN_IF_ERROR(Environment(depth));
      return Add(keep, RType::kEnvironment, found);
    case kCodeAlternative: return Alternative(depth, keep, found);
    default: return Vector(flags, depth, keep, found);
  }
}

Status RFileReader::Symbol(bool keep, Found* found) {
  RString name;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeString(&name));
  if (name.bytes.size() > kMostBytesOfSymbol) return bytes_.Damaged("a name is too long");
  found->symbol = static_cast<int32_t>(file_.symbols_.size());
  HEDDLE_RETURN_IF_ERROR(AddSymbol(std::string(name.bytes)));
  HEDDLE_RETURN_IF_ERROR(Add(keep, RType::kSymbol, found));
  if (keep) At(found->object).begin = found->symbol;
  return OkStatus();
}

Status RFileReader::Reference(const Flags& flags, bool keep, Found* found) {
  int32_t number = flags.reference;
  if (number == 0) HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
  if (number < 1 || static_cast<size_t>(number) > file_.symbols_.size())
    return bytes_.Damaged("it refers to an object that is not there");
  found->symbol = number - 1;
  const bool is_symbol = !file_.symbols_[static_cast<size_t>(number) - 1].empty();
  HEDDLE_RETURN_IF_ERROR(Add(keep, is_symbol ? RType::kSymbol : RType::kEnvironment, found));
  if (keep) At(found->object).begin = found->symbol;
  return OkStatus();
}

// A list of pairs, or a call, function and the like, which are written as one: attributes, name, value, and
// the rest of the list.
Status RFileReader::Pairs(Flags flags, int depth, bool keep, Found* found) {
  const RType type = TypeOf(flags.code);
  HEDDLE_RETURN_IF_ERROR(Add(keep, type, found));
  const bool keeps_values = keep && type == RType::kPairs;
  int32_t last = kNoObject;
  for (bool is_first = true; IsOfPairs(flags.code); is_first = false) {
    if (flags.has_attributes)
      HEDDLE_RETURN_IF_ERROR(Attributes(depth, keep && is_first, is_first ? found->object : kNoObject));
    Found tag, value;
    if (flags.has_tag) HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &tag));
    HEDDLE_RETURN_IF_ERROR(Object(depth + 1, keeps_values, &value));
    if (value.object != kNoObject) At(value.object).name = tag.symbol;
    AppendChild(found->object, value.object, &last);
    HEDDLE_RETURN_IF_ERROR(TakeFlags(&flags));
  }
  if (flags.code == kCodeNull) return OkStatus();
  // A pair whose second half is no list, as some forms of vectors are kept in.
  Found end;
  HEDDLE_RETURN_IF_ERROR(ObjectOf(flags, depth + 1, keeps_values, &end));
  AppendChild(found->object, end.object, &last);
  return OkStatus();
}

Status RFileReader::TakeLength(int64_t* length) {
  int32_t number = 0;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
  *length = number;
  if (number == -1) {  // More than 2^31 - 1: in two halves.
    int32_t high = 0, low = 0;
    HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&high));
    HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&low));
    *length = static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 |
                                   static_cast<uint32_t>(low));
  }
  return *length < 0 ? bytes_.Damaged("a vector has less than no cells") : OkStatus();
}

Status RFileReader::Vector(const Flags& flags, int depth, bool keep, Found* found) {
  HEDDLE_RETURN_IF_ERROR(Add(keep, TypeOf(flags.code), found));
  const int32_t object = found->object;
  int64_t length = 0;
  switch (flags.code) {
    case kCodeLogical:
    case kCodeInteger:
    case kCodeDouble:
    case kCodeComplex:
    case kCodeBytes: {
      HEDDLE_RETURN_IF_ERROR(TakeLength(&length));
      const int64_t bytes_of_cell = BytesOfCell(flags.code);
      if (keep) At(object).begin = bytes_.offset();
      if (length > bytes_.left() / bytes_of_cell)
        return DataLoss("cannot read '{}': it is cut off inside of a vector of {} cells", file_.path_,
                        length);
      HEDDLE_RETURN_IF_ERROR(bytes_.Skip(length * bytes_of_cell));
      break;
    }
    case kCodeTexts:
      HEDDLE_RETURN_IF_ERROR(TakeLength(&length));
      if (keep) At(object).begin = bytes_.offset();
      for (int64_t i = 0; i < length; ++i) HEDDLE_RETURN_IF_ERROR(bytes_.SkipString());
      break;
    case kCodeList:
    case kCodeExpressions: {
      HEDDLE_RETURN_IF_ERROR(TakeLength(&length));
      int32_t last = kNoObject;
      for (int64_t i = 0; i < length; ++i) {
        Found element;
        HEDDLE_RETURN_IF_ERROR(Object(depth + 1, keep && flags.code == kCodeList, &element));
        AppendChild(object, element.object, &last);
      }
      break;
    }
    case kCodeSpecial:
    case kCodeBuiltin: {
      int32_t bytes = 0;
      HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&bytes));
      if (bytes < 0) return bytes_.Damaged("a name has less than no bytes");
      HEDDLE_RETURN_IF_ERROR(bytes_.Skip(bytes));
      break;
    }
    case kCodeString: {  // By itself it is a part of other objects only.
      int32_t bytes = 0;
      HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&bytes));
      if (bytes < -1) return bytes_.Damaged("a text has less than no bytes");
      if (bytes > 0) HEDDLE_RETURN_IF_ERROR(bytes_.Skip(bytes));
      break;
    }
    case kCodePointer: {
      HEDDLE_RETURN_IF_ERROR(AddSymbol(""));
      Found part;
      HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &part));
      HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &part));
      break;
    }
    case kCodeWeakReference: HEDDLE_RETURN_IF_ERROR(AddSymbol("")); break;
    case kCodeBytecode: {
      int32_t parts = 0;
      HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&parts));
      HEDDLE_RETURN_IF_ERROR(Bytecode(depth));
      break;
    }
    case kCodeS4: break;
    default: return bytes_.Damaged(fmt::format("no object has the type {}", flags.code));
  }
  if (keep) At(object).length = length;
  return flags.has_attributes ? Attributes(depth, keep, object) : OkStatus();
}

Status RFileReader::Attributes(int depth, bool keep, int32_t object) {
  Found attributes;
  HEDDLE_RETURN_IF_ERROR(Object(depth + 1, keep, &attributes));
  if (keep && At(attributes.object).type == RType::kPairs)
    At(object).first_attribute = At(attributes.object).first_child;
  return OkStatus();
}

Status RFileReader::Environment(int depth) {
  int32_t is_locked = 0;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&is_locked));
  HEDDLE_RETURN_IF_ERROR(AddSymbol(""));
  // What is around it, its variables in a list and in a table, and its attributes.
  for (int part = 0; part < 4; ++part) {
    Found found;
    HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &found));
  }
  return OkStatus();
}

Status RFileReader::Strings() {
  int32_t zero = 0, count = 0;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&zero));
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&count));
  for (int32_t i = 0; i < count; ++i) HEDDLE_RETURN_IF_ERROR(bytes_.SkipString());
  return OkStatus();
}

// What class of which package it is, a state that only the class knows, and attributes.
Status RFileReader::Alternative(int depth, bool keep, Found* found) {
  HEDDLE_RETURN_IF_ERROR(Add(keep, RType::kOther, found));
  Found info, state;
  HEDDLE_RETURN_IF_ERROR(Object(depth + 1, keep, &info));
  HEDDLE_RETURN_IF_ERROR(Object(depth + 1, keep, &state));
  HEDDLE_RETURN_IF_ERROR(Attributes(depth, keep, found->object));
  if (!keep) return OkStatus();
  const RObject* const name = file_.FirstChild(At(info.object));
  if (name == nullptr || name->type != RType::kSymbol)
    return bytes_.Damaged("a vector does not say of which class it is");
  RObject& object = At(found->object);
  object.begin = name->begin;
  const std::string_view kind = file_.SymbolOf(*name);
  const RObject& inside = At(state.object);
  const RObject* const first = file_.FirstChild(inside);
  if (kind == "compact_intseq" || kind == "compact_realseq") {
    object.type = kind == "compact_intseq" ? RType::kInteger : RType::kDouble;
    return ReadSequence(inside, &object);
  }
  if (kind == "deferred_string") {
    if (first == nullptr || (first->type != RType::kInteger && first->type != RType::kDouble))
      return bytes_.Damaged("texts are of no numbers");
    object.type = RType::kTexts;
    object.storage = RStorage::kNumbersAsTexts;
    object.first_child = inside.first_child;
    object.length = first->length;
    return OkStatus();
  }
  if (kind.starts_with("wrap_")) {
    if (first == nullptr) return bytes_.Damaged("a vector is missing");
    const int32_t attributes = object.first_attribute, next = object.next;
    object = *first;
    object.first_attribute = attributes;
    object.next = next;
    object.name = kNoObject;
  }
  return OkStatus();
}

// Its state is how many, the first and the step.
Status RFileReader::ReadSequence(const RObject& state, RObject* object) {
  constexpr double kMostNumber = 0x1p53;
  if (state.type != RType::kDouble || state.storage != RStorage::kInFile || state.length != 3)
    return bytes_.Damaged("a sequence is of no three numbers");
  RBytes bytes(file_.path_, *file_.bytes_, file_.is_little_endian_, state.begin);
  std::string_view taken;
  HEDDLE_RETURN_IF_ERROR(bytes.Take(24, &taken));
  double numbers[3];
  for (int k = 0; k < 3; ++k) {
    const auto bits = LoadNumber<uint64_t>(taken.data() + k * 8, file_.is_little_endian_);
    std::memcpy(&numbers[k], &bits, sizeof bits);
  }
  const auto [count, first, step] = numbers;
  const double last = first + (count - 1) * step;
  const bool is_counted = count >= 0 && count <= kMostNumber && count == std::trunc(count);
  const auto fits = [&](double number) {
    return object->type == RType::kDouble ? std::isfinite(number)
                                          : number == std::trunc(number) && std::abs(number) <= INT32_MAX;
  };
  if (!is_counted || !fits(step) || (count > 0 && (!fits(first) || !fits(last))))
    return bytes_.Damaged("a sequence is of no numbers");
  object->storage = RStorage::kSequence;
  object->length = static_cast<int64_t>(count);
  object->first = first;
  object->step = step;
  return OkStatus();
}

// A function that R has compiled: its code, and the constants of it. What is in it is an object, one deeper,
// so that Object() bounds how deep this goes.
Status RFileReader::Bytecode(int depth) {
  Found found;
  HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &found));
  int32_t constants = 0;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&constants));
  for (int32_t i = 0; i < constants; ++i) {
    int32_t code = 0;
    HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&code));
    HEDDLE_RETURN_IF_ERROR(code == kCodeBytecode ? Bytecode(depth + 1) : PairsOfBytecode(code, depth + 1));
  }
  return OkStatus();
}

Status RFileReader::PairsOfBytecode(int code, int depth) {
  for (;;) {
    Found found;
    int32_t number = 0;
    if (code == kCodeSameCode) return bytes_.TakeInt(&number);
    if (code == kCodeNamedCode) {
      HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
      HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
      code = number;
    }
    const bool has_attributes = code == kCodeCallWithAttributes || code == kCodePairsWithAttributes;
    if (code != kCodeCall && code != kCodePairs && !has_attributes)
      return Object(depth + 1, /*keep=*/false, &found);
    if (has_attributes) HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &found));
    HEDDLE_RETURN_IF_ERROR(Object(depth + 1, /*keep=*/false, &found));  // The name.
    HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
    HEDDLE_RETURN_IF_ERROR(PairsOfBytecode(number, depth + 1));
    HEDDLE_RETURN_IF_ERROR(bytes_.TakeInt(&number));
    code = number;
  }
}

}  // namespace heddle::ops
