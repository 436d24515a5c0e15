// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_object.h"

#include <utility>

#include "core/text/utf8.h"
#include "core/values/sizes.h"
#include "ops/io/formats/rds/r_sparse.h"
#include "ops/io/formats/rds/r_table.h"
#include "ops/io/formats/rds/r_texts.h"
#include "ops/io/formats/rds/r_vector.h"
#include "ops/io/formats/several_arrays.h"

namespace heddle::ops {
namespace {

std::string_view NameOf(RType type) {
  switch (type) {
    case RType::kNull: return "NULL";
    case RType::kSymbol: return "a name";
    case RType::kPairs: return "a list of pairs";
    case RType::kLogical: return "a logical vector";
    case RType::kInteger: return "a vector of integers";
    case RType::kDouble: return "a vector of numbers";
    case RType::kComplex: return "a vector of complex numbers";
    case RType::kTexts: return "a vector of texts";
    case RType::kList: return "a list";
    case RType::kBytes: return "a raw vector";
    case RType::kS4: return "an S4 object";
    case RType::kFunction: return "a function";
    case RType::kEnvironment: return "an environment";
    case RType::kCall: return "a call";
    case RType::kExpressions: return "an expression";
    case RType::kPointer: return "a pointer";
    case RType::kOther: break;
  }
  return "an object of another package";
}

// The parts of a list or of pairs, with their names; those without one have their number.
struct Part {
  std::string name;
  const RObject* object;
};

Result<std::vector<Part>> PartsOf(const RFile& file, const RObject& object) {
  std::vector<Part> parts;
  if (object.type != RType::kList && object.type != RType::kPairs) return parts;
  std::vector<std::string> names;
  const RObject* const texts = file.Attribute(object, "names");
  if (texts != nullptr && texts->length == object.length) {
    HEDDLE_ASSIGN_OR_RETURN(names, TextsOf(file, texts));
  }
  for (const RObject* part = file.FirstChild(object); part != nullptr; part = file.Next(*part)) {
    std::string name(object.type == RType::kPairs  ? file.NameOf(*part)
                     : parts.size() < names.size() ? std::string_view(names[parts.size()])
                                                   : std::string_view());
    if (name.empty()) name = std::to_string(parts.size() + 1);
    parts.push_back({std::move(name), part});
  }
  return parts;
}

const RObject* FindPart(const std::vector<Part>& parts, std::string_view name) {
  for (const Part& part : parts)
    if (part.name == name) return part.object;
  return nullptr;
}

// Whether it is a matrix, a table, or a vector of numbers.
Result<bool> IsReadable(const RFile& file, const RObject& object) {
  HEDDLE_ASSIGN_OR_RETURN(const bool is_sparse, HoldsSparse(file, object));
  if (is_sparse) return true;
  HEDDLE_ASSIGN_OR_RETURN(const bool is_frame, IsDataFrame(file, object));
  if (is_frame) return true;
  HEDDLE_ASSIGN_OR_RETURN(const RCells cells, CellsOf(file, object));
  return AreNumbers(cells);
}

// "a$b" names a part of a part. A name may hold a dollar itself.
Result<const RObject*> FindNamed(const ReadOptions& options, const RFile& file,
                                 const std::vector<Part>& parts) {
  std::string_view rest = options.dataset;
  std::vector<Part> inside = parts;
  for (;;) {
    if (const RObject* const found = FindPart(inside, rest); found != nullptr) return found;
    const size_t dollar = rest.find('$');
    const RObject* const outer =
        dollar == std::string_view::npos ? nullptr : FindPart(inside, rest.substr(0, dollar));
    if (outer == nullptr) break;
    HEDDLE_ASSIGN_OR_RETURN(inside, PartsOf(file, *outer));
    rest.remove_prefix(dollar + 1);
  }
  std::vector<std::string> names;
  for (const Part& part : inside) names.push_back(part.name);
  return DataLoss("cannot read '{}': it has no object '{}'", options.path, options.dataset)
      .WithNote("it has: " + ListOfArrays(names));
}

}  // namespace

Result<std::string> DescribeObject(const RFile& file, const RObject& object) {
  if (object.type == RType::kOther)
    return fmt::format("a vector of class '{}', which its own package reads",
                       ShownInLine(file.SymbolOf(object), 40));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassesOf(file, object));
  if (classes.empty()) return std::string(NameOf(object.type));
  return fmt::format("an object of class '{}'", ShownInLine(classes[0], 40));
}

Status NoTable(const RFile& file, const RObject& object) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string what, DescribeObject(file, object));
  const Status fault =
      DataLoss("cannot read '{}': it holds {}, no matrix and no data frame", file.path(), what);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(file, object));
  std::vector<std::string> names;
  for (const Part& part : parts) {
    HEDDLE_ASSIGN_OR_RETURN(const bool is_readable, IsReadable(file, *part.object));
    if (is_readable) names.push_back(part.name);
  }
  return names.empty() ? fault.WithNote("as.matrix(x) or as.data.frame(x), in R, may make one of it")
                       : fault.WithNote("dataset= reads a part of it: " + ListOfArrays(names));
}

Result<std::vector<int64_t>> SizesOf(const RFile& file, const RObject& vector) {
  const RObject* const dim = file.Attribute(vector, "dim");
  if (dim == nullptr) return std::vector<int64_t>{vector.length};
  constexpr int64_t kMostIndexes = 64;
  if (dim->type != RType::kInteger || dim->length < 1 || dim->length > kMostIndexes)
    return file.Damaged("the sizes of an array are none");
  std::vector<int64_t> sizes(static_cast<size_t>(dim->length)), missing;
  HEDDLE_RETURN_IF_ERROR(ReadIntegers(file, *dim, RCells::kIntegers, 0, dim->length, sizes.data(), &missing));
  int64_t cells = 1;
  bool is_right = missing.empty();
  for (const int64_t size : sizes) {
    is_right = is_right && size >= 0;
    cells = SaturatingProduct(cells, std::max<int64_t>(0, size));
  }
  if (!is_right || cells != vector.length)
    return file.Damaged(fmt::format("the sizes of an array are not those of its {} cells", vector.length));
  return sizes;
}

const RObject* NamesOfIndex(const RFile& file, const RObject& vector, int64_t index) {
  if (file.Attribute(vector, "dim") == nullptr) return index == 0 ? file.Attribute(vector, "names") : nullptr;
  const RObject* const names = file.Attribute(vector, "dimnames");
  const RObject* one = names == nullptr || names->type != RType::kList ? nullptr : file.FirstChild(*names);
  for (; one != nullptr && index > 0; --index) one = file.Next(*one);
  return one;
}

Result<const RObject*> ChooseObject(const ReadOptions& options, const RFile& file) {
  const RObject& root = file.root();
  HEDDLE_ASSIGN_OR_RETURN(const bool is_readable, IsReadable(file, root));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Part> parts,
                          is_readable ? Result<std::vector<Part>>(std::vector<Part>()) : PartsOf(file, root));
  if (!options.dataset.empty()) {
    if (!parts.empty()) return FindNamed(options, file, parts);
    return DataLoss("cannot read '{}': it holds one object, none that is called '{}'", options.path,
                    options.dataset)
        .WithNote("leave out dataset=");
  }
  if (parts.empty()) return &root;
  // Of an object with a class, as models are, its parts are not what somebody means who names none.
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassesOf(file, root));
  if (!classes.empty()) return NoTable(file, root);
  std::vector<std::string> names;
  const RObject* only = nullptr;
  for (const Part& part : parts) {
    HEDDLE_ASSIGN_OR_RETURN(const bool is_one, IsReadable(file, *part.object));
    if (!is_one) continue;
    names.push_back(part.name);
    only = part.object;
  }
  if (names.size() == 1) return only;
  if (names.size() > 1) return SeveralArrays(options.path, "matrices and tables", names);
  if (parts.size() == 1) return parts[0].object;
  return NoTable(file, root);
}

}  // namespace heddle::ops
