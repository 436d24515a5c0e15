// SPDX-License-Identifier: Apache-2.0
#include "core/text/file_kind.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>

namespace heddle {
namespace {

using std::string_view_literals::operator""sv;

struct Mark {
  std::string_view bytes;  // what the file begins with
  ForeignEncoding kind;
  bool needs_zero = false;  // a text may begin like that, but holds no zero byte
  size_t offset = 0;        // where the bytes stand
};

constexpr std::string_view kAsCsv = "save it as csv, with the program that it comes from";
constexpr std::string_view kByPandas = "pandas can read it and write csv, npy or parquet";

constexpr Mark kMarks[] = {
    {"1AY&SY", {"a file packed by bzip2", "unpack it: bunzip2 FILE; gzip and zstd are read packed"}, true, 4},
    {"\xFD"
     "7zXZ\0"sv,
     {"a file packed by xz", "unpack it: unxz FILE; gzip and zstd are read packed"}},
    {"\x04\x22\x4D\x18", {"a file packed by lz4", "unpack it: unlz4 FILE; gzip and zstd are read packed"}},
    {"LZIP", {"a file packed by lzip", "unpack it: lzip -d FILE; gzip and zstd are read packed"}, true},
    {"7z\xBC\xAF\x27\x1C", {"a 7-Zip archive", "unpack it: 7z x FILE"}},
    {"Rar!\x1A\x07", {"a RAR archive", "unpack it first"}},
    {"PK\x03\x04", {"a zip archive", "unpack it first: of archives Heddle reads npz"}},
    {"PK\x05\x06", {"an empty zip archive", "it holds no file"}},
    {"ustar", {"a tar archive", "unpack it: tar xf FILE"}, true, 257},
    {"SQLite format 3\0"sv,
     {"a database of SQLite", "write a table as csv: sqlite3 -csv -header FILE 'select * from TABLE' > NEW"}},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", {"a workbook of Excel (xls) or another Office document", kAsCsv}},
    {"%PDF-", {"a PDF document", "a table in it has to be taken out with another program"}},
    {"\x80\x02", {"a pickle of Python", kByPandas}},
    {"\x80\x03", {"a pickle of Python", kByPandas}},
    {"\x80\x04\x95", {"a pickle of Python", kByPandas}},
    {"\x80\x05\x95", {"a pickle of Python", kByPandas}},
    {"<stata_dta>", {"a data set of Stata", kByPandas}},
    {"$FL2", {"a data set of SPSS", kByPandas}, true},
    {"\0\0\0\0\0\0\0\0\0\0\0\0\xC2\xEA\x81\x60"sv, {"a data set of SAS", kByPandas}},
    {"Obj\x01", {"an Avro file", "convert it to csv, jsonl or parquet"}},
    {"ORC", {"an ORC file", "convert it to csv, jsonl or parquet"}, true},
    {"FEA1",
     {"a Feather file of version 1",
      "write it as version 2, in Python: pyarrow.feather.write_feather(pyarrow.feather.read_table(OLD), NEW)"},
     true},
    {"PARE", {"an encrypted Parquet file", "write it without encryption of its footer and columns"}, true},
    {"Octave-1-",
     {"a binary file of Octave (save -binary)",
      "write it as text in Octave: load OLD; save -text NEW VARIABLE"},
     true},
    {"CDF\x01", {"a NetCDF file of version 3", "convert it to HDF5: nccopy -k nc4 OLD NEW"}},
    {"CDF\x02", {"a NetCDF file of version 3", "convert it to HDF5: nccopy -k nc4 OLD NEW"}},
    {"\x0E\x03\x13\x01", {"an HDF4 file", "convert it to HDF5: h4toh5 OLD NEW"}},
    {"\x89PNG\r\n\x1A\n", {"a PNG picture", "its pixels have to become numbers: NumPy and Pillow write npy"}},
    {"\xFF\xD8\xFF", {"a JPEG picture", "its pixels have to become numbers: NumPy and Pillow write npy"}},
    {"GIF8", {"a GIF picture", "its pixels have to become numbers: NumPy and Pillow write npy"}, true},
    {"\x7F"
     "ELF",
     {"a program", "name a file with data"}},
    {"version https://git-lfs.github.com/spec/",
     {"a pointer of Git LFS, not the file itself", "fetch it: git lfs pull"}},
};

// Whatever the case of its letters; `word` has small ones.
bool BeginsWith(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

// A page that a server sent instead of the file.
bool IsWebPage(std::string_view beginning) {
  beginning.remove_prefix(std::min(beginning.find_first_not_of(" \t\r\n"), beginning.size()));
  return BeginsWith(beginning, "<!doctype html") || BeginsWith(beginning, "<html");
}

uint32_t NumberAt(std::string_view bytes, size_t place) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + place, sizeof(number));
  return number;
}

// Messages of Arrow without the table of contents that a file has. The first is the schema: a mark, which
// Arrow 0.14 and before left out, the size, which ends at a multiple of 8, and where its root is.
bool IsArrowStream(std::string_view beginning) {
  constexpr size_t kBytesOfHead = 12;
  if (beginning.size() < kBytesOfHead) return false;
  if (beginning.starts_with("\xFF\xFF\xFF\xFF")) {
    const uint32_t size = NumberAt(beginning, 4), root = NumberAt(beginning, 8);
    return size > 0 && size % 8 == 0 && root >= 4 && root < size;
  }
  constexpr uint32_t kRoot = 16;  // as that version had it, and the size of the root's list of fields
  return NumberAt(beginning, 0) % 8 == 4 && NumberAt(beginning, 4) == kRoot &&
         beginning.substr(8).starts_with("\0\0\x0A\0"sv);
}

}  // namespace

std::optional<ForeignEncoding> FindFileKind(std::string_view beginning) {
  for (const Mark& mark : kMarks) {
    if (beginning.size() < mark.offset || !beginning.substr(mark.offset).starts_with(mark.bytes)) continue;
    if (!mark.needs_zero || beginning.find('\0') != std::string_view::npos) return mark.kind;
  }
  if (IsArrowStream(beginning))
    return ForeignEncoding{
        "a stream of Arrow, not a file",
        "write it as a file (Feather): pyarrow.feather.write_feather(pyarrow.ipc.open_stream(OLD).read_all(), "
        "NEW), or write_ipc of Polars"};
  if (IsWebPage(beginning))
    return ForeignEncoding{"an HTML page",
                           "perhaps a server's answer instead of the file: look at it in a browser"};
  return std::nullopt;
}

}  // namespace heddle
