// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_file.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ops/io/files/packing.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/rds/r_file_reader.h"

namespace heddle::ops {
namespace {

using std::string_view_literals::operator""sv;

constexpr int64_t kBytesOfMarks = 16;

// How a file begins, and what it is.
struct Beginning {
  std::string_view mark;
  bool is_workspace = false;
  bool is_little_endian = false;
  std::string_view fault = {};   // Why it is not read,
  std::string_view remedy = {};  // and what writes one that is.
};

constexpr std::string_view kIsText = "it holds R objects as text";
constexpr std::string_view kNotAsText = "leave out ascii = TRUE in saveRDS() or save()";
constexpr std::string_view kWithGzip =
    "in R: saveRDS(x, FILE, compress = \"gzip\"), or save(..., compress = \"gzip\")";

// Those that no other file begins with,
constexpr Beginning kOfR[] = {
    {kRdsMark},
    {"B\n\2\0\0\0"sv, false, true},
    {"B\n\3\0\0\0"sv, false, true},
    {"RDX2\nX\n", true},
    {"RDX3\nX\n", true},
    {"RDB2\nB\n", true, true},
    {"RDB3\nB\n", true, true},
    {"RDA2\nA\n", true, false, kIsText, kNotAsText},
    {"RDA3\nA\n", true, false, kIsText, kNotAsText},
};
// and those that only the name of the file tells from others.
constexpr Beginning kByName[] = {
    {"A\n2\n", false, false, kIsText, kNotAsText},
    {"A\n3\n", false, false, kIsText, kNotAsText},
    {"BZh", false, false, "it is packed by bzip2", kWithGzip},
    {"\xFD"
     "7zXZ\0"sv,
     false, false, "it is packed by xz", kWithGzip},
};

Result<std::string> FirstBytes(const InputFile& file) {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes,
                          file.Read(0, std::min(file.size(), kBytesOfMarks), &buffer));
  return std::string(bytes);
}

template <size_t N>
const Beginning* FindBeginning(const Beginning (&beginnings)[N], std::string_view bytes) {
  const auto* const found = std::find_if(std::begin(beginnings), std::end(beginnings),
                                         [&](const Beginning& one) { return bytes.starts_with(one.mark); });
  return found == std::end(beginnings) ? nullptr : found;
}

}  // namespace

Result<bool> IsRds(const std::string& path, const InputFile& file) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, FirstBytes(file));
  if (FindBeginning(kOfR, bytes) != nullptr) return true;
  const std::string name = Lower(WithoutPackedEnding(path));
  const bool is_named = name.ends_with(".rds") || name.ends_with(".rda") || name.ends_with(".rdata");
  return is_named && FindBeginning(kByName, bytes) != nullptr;
}

Result<RFile> RFile::Open(const ReadOptions& options, Files& files) {
  RFile file;
  file.path_ = options.path;
  HEDDLE_ASSIGN_OR_RETURN(file.bytes_, OpenOneFile(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const std::string first, FirstBytes(*file.bytes_));
  const Beginning* beginning = FindBeginning(kOfR, first);
  if (beginning == nullptr) beginning = FindBeginning(kByName, first);
  if (beginning == nullptr)
    return DataLoss("cannot read '{}': it is no file of saveRDS() or save() of R", options.path)
        .WithNote("format= says what it is");
  if (!beginning->fault.empty())
    return DataLoss("cannot read '{}': {}, which Heddle does not read", options.path, beginning->fault)
        .WithNote(std::string(beginning->remedy));
  file.is_workspace_ = beginning->is_workspace;
  file.is_little_endian_ = beginning->is_little_endian;
  // Behind the mark and the letter of the form: versions of the form, of the R that wrote it, and of the
  // oldest that reads it; since version 3 the encoding of texts as well.
  RBytes head(file.path_, *file.bytes_, file.is_little_endian_, beginning->is_workspace ? 7 : 2);
  int32_t version = 0, ignored = 0;
  HEDDLE_RETURN_IF_ERROR(head.TakeInt(&version));
  if (version != 2 && version != 3)
    return DataLoss("cannot read '{}': it is of version {} of R's form of files, Heddle reads 2 and 3",
                    options.path, version)
        .WithNote("saveRDS(x, FILE, version = 3), in R, writes one that is read");
  HEDDLE_RETURN_IF_ERROR(head.TakeInt(&ignored));
  HEDDLE_RETURN_IF_ERROR(head.TakeInt(&ignored));
  if (version == 3) {
    constexpr int32_t kMostBytes = 256;
    int32_t bytes = 0;
    std::string_view name;
    HEDDLE_RETURN_IF_ERROR(head.TakeInt(&bytes));
    if (bytes < 0 || bytes > kMostBytes) return head.Damaged("no encoding has such a name");
    HEDDLE_RETURN_IF_ERROR(head.Take(bytes, &name));
    file.native_encoding_ = Lower(name);
  }
  HEDDLE_RETURN_IF_ERROR(RFileReader(&file, head.offset()).Run());
  return file;
}

const RObject* RFile::Attribute(const RObject& object, std::string_view name) const {
  for (const RObject* one = Find(object.first_attribute); one != nullptr; one = Next(*one))
    if (NameOf(*one) == name) return one;
  return nullptr;
}

Status RFile::Damaged(std::string_view what) const {
  return DataLoss("cannot read '{}': it is damaged: {}", path_, what);
}

}  // namespace heddle::ops
