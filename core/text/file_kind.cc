// SPDX-License-Identifier: Apache-2.0
#include "core/text/file_kind.h"

#include <algorithm>
#include <cctype>

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
     {"a Feather file of version 1", "write it as version 2 (Arrow): pyarrow.feather.write_feather"},
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

}  // namespace

std::optional<ForeignEncoding> FindFileKind(std::string_view beginning) {
  for (const Mark& mark : kMarks) {
    if (beginning.size() < mark.offset || !beginning.substr(mark.offset).starts_with(mark.bytes)) continue;
    if (!mark.needs_zero || beginning.find('\0') != std::string_view::npos) return mark.kind;
  }
  if (IsWebPage(beginning))
    return ForeignEncoding{"an HTML page",
                           "perhaps a server's answer instead of the file: look at it in a browser"};
  return std::nullopt;
}

}  // namespace heddle
