// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/joint_write.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/programs/distribution.h"
#include "core/values/panels.h"
#include "ops/base/held_bytes.h"
#include "ops/base/kernel.h"
#include "ops/frame/row_pieces.h"
#include "ops/io/files/joint_files.h"
#include "ops/io/formats/binary/row_coding.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/write/joint_content.h"
#include "ops/io/formats/write/record_bytes.h"
#include "ops/io/formats/write/visit_rows.h"
#include "ops/io/formats/write/write_parts.h"

namespace heddle::ops {
namespace {

// As Spark and Hadoop call them, with an end that tells others what they are.
std::string NameOfPart(size_t number, const PackedOptions& options) {
  const std::string_view endings = EntryOf(options.options.format).endings;
  const Packing packing = options.options.packing.value_or(options.whole);
  return fmt::format("part-{:05}{}{}", number, endings.substr(0, endings.find(' ')), EndingOf(packing));
}

JointFile FileAt(const std::string& path, const std::string& hidden, size_t number,
                 const PackedOptions& options) {
  return {.path = path,
          .hidden = hidden,
          .name = options.options.parts == 0 ? std::string() : NameOfPart(number, options)};
}

ByteSink SinkOf(JointBytes& bytes) {
  return [&bytes](std::string_view piece) { return bytes.Append(piece); };
}

}  // namespace

std::vector<int64_t> CutsOfFiles(int64_t rows, int64_t parts) {
  constexpr int64_t kFewGranules = 8;  // of a part: then parts of whole granules differ much
  const int64_t files = std::clamp<int64_t>(parts, 1, std::max<int64_t>(1, rows));
  if (rows / files >= kFewGranules * Granule(rows))
    return Distribution::SplitRows(rows, static_cast<int32_t>(files)).split.cuts;
  std::vector<int64_t> cuts;
  for (int64_t f = 0; f <= files; ++f) cuts.push_back(rows / files * f + rows % files * f / files);
  return cuts;
}

JointWrite::JointWrite(const ValueInfo& whole, std::span<const int64_t> rank_cuts, int32_t rank,
                       const std::string& path, const WriteOptions& options, int64_t held_bytes, Files& files)
    : whole_(whole),
      rank_cuts_(rank_cuts),
      rank_(rank),
      path_(path),
      options_(PackingFor(path, options)),
      held_bytes_(held_bytes),
      files_(files) {}

// The hidden name, of rank 0, and of each file of which this rank has rows its number and their totals; the
// cells of these files with their numbers.
Result<JointWrite::Begun> JointWrite::Begin(const Value& rows) const {
  const WriteOptions& options = options_.options;
  const auto kind = whole_.IsFrame() ? Value::Kind::kFrame : Value::Kind::kMatrix;
  HEDDLE_RETURN_IF_ERROR(CheckWrite(kind, whole_.shape, path_, options));
  RecordWriter share, all_cells;
  std::string hidden;
  if (rank_ == 0) {
    if (files_.joint() == nullptr) return Internal("'{}' cannot be written by several workers here", path_);
    HEDDLE_ASSIGN_OR_RETURN(hidden, files_.joint()->Begin(path_, options.parts > 0));
  }
  share.PutText(hidden);
  const std::vector<int64_t> cuts = CutsOfFiles(whole_.shape.rows, options.parts);
  const int64_t begin = rank_cuts_[static_cast<size_t>(rank_)], end = begin + rows.shape().rows;
  for (size_t f = 0; f + 1 < cuts.size(); ++f) {
    const int64_t from = std::max(begin, cuts[f]), to = std::min(end, cuts[f + 1]);
    if (from >= to) continue;
    const FileContent content{.info = InfoOfRows(whole_, cuts[f + 1] - cuts[f]), .row_begin = cuts[f]};
    const bool counts = CountsPanels(rows, content);
    RowTotals totals;
    CountedCells cells;
    int64_t bytes = 0;
    if (counts || HasTotals(whole_, options.format))
      HEDDLE_RETURN_IF_ERROR(VisitRows(
          rows, whole_, from - begin, to - begin, 1, held_bytes_, [&](int64_t at, const Value& some) {
            totals.Add(TotalsOf(some, begin + at, options));
            cells.Add(CellsOf(some, options));
            if (counts) bytes += BytesOfSection(some, begin + at, content, options_);
            return IsCancelled(options.cancelled) ? Cancelled("cancelled") : OkStatus();
          }));
    share.Put(uint64_t{f});
    totals.Put(&share);
    share.Put(counts ? bytes : kUnknown);
    if (!options.by_groups) continue;
    all_cells.Put(uint64_t{f});
    PutCells(cells, &all_cells);
  }
  return Begun{std::move(share).Take(), std::move(all_cells).Take()};
}

Result<std::string> JointWrite::ChooseCodings(std::span<const std::string> for_all,
                                              std::span<const std::string_view> cells) const {
  HEDDLE_ASSIGN_OR_RETURN(ToldTotals told, TotalsIn(for_all, rank_));
  RecordWriter codings;
  // Every rank tells its files in their order: the cells of one file are there at a time.
  std::vector<RecordTaker> takers(cells.begin(), cells.end());
  std::vector<uint64_t> next;
  for (RecordTaker& taker : takers) next.push_back(taker.AtEnd() ? UINT64_MAX : taker.Take<uint64_t>());
  const std::vector<FileContent> files = FilesOf(whole_, options_.options, told.totals, {});
  for (uint64_t number = 0; number < files.size(); ++number) {
    const FileContent& file = files[size_t{number}];
    CountedCells of_file;
    for (size_t r = 0; r < takers.size(); ++r) {
      if (next[r] != number) continue;
      of_file.Add(TakeCells(&takers[r]));
      if (!takers[r].ok()) return MalformedShare();
      next[r] = takers[r].AtEnd() ? UINT64_MAX : takers[r].Take<uint64_t>();
    }
    HEDDLE_ASSIGN_OR_RETURN(const CodingOfFile coding,
                            CodingOf(file.info, file.totals, std::move(of_file), options_.options));
    codings.PutText(coding == nullptr ? std::string() : coding->header());
  }
  return std::move(codings).Take();
}

// One process knows where the bytes of all its rows belong.
bool JointWrite::CountsPanels(const Value& rows, const FileContent& content) const {
  return rows.IsPanels() && rank_cuts_.size() > 2 && CountingOf(content, options_) != Counting::kNot;
}

Status JointWrite::UseTotals(std::span<const std::string> for_all, std::string_view codings) {
  HEDDLE_ASSIGN_OR_RETURN(ToldTotals told, TotalsIn(for_all, rank_));
  hidden_ = std::move(told.hidden);
  counted_ = std::move(told.counted);
  std::map<uint64_t, CodingOfFile> of_files;
  RecordTaker chosen(codings);
  for (uint64_t file = 0; !chosen.AtEnd(); ++file)
    if (const std::string header = chosen.TakeText(); !header.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(of_files[file], RowCoding::Of(header, whole_.shape.columns));
    }
  if (!chosen.ok()) return MalformedShare();
  for (FileContent& content : FilesOf(whole_, options_.options, told.totals, of_files)) {
    const int64_t unit = RowsOfUnit(content, options_);
    made_.push_back({std::move(content), unit});
  }
  for (const int64_t cut : rank_cuts_) section_cuts_.push_back(BeginOfSection(cut));
  return files_.joint()->Know(path_, hidden_);
}

size_t JointWrite::FileOf(int64_t row) const {
  const auto behind = std::upper_bound(made_.begin(), made_.end(), row, [](int64_t at, const File& file) {
    return at < file.content.row_begin;
  });
  return static_cast<size_t>(behind - made_.begin()) - 1;
}

// The first row from this one on at which a section may begin.
int64_t JointWrite::BeginOfSection(int64_t row) const {
  const File& file = made_[FileOf(row)];
  const int64_t units = (row - file.content.row_begin + file.rows_of_unit - 1) / file.rows_of_unit;
  return std::min(file.content.row_begin + units * file.rows_of_unit, file.End());
}

Result<std::vector<Value>> JointWrite::RowsForOthers(const Value& rows) const {
  const int64_t begin = rank_cuts_[static_cast<size_t>(rank_)], end = begin + rows.shape().rows;
  std::vector<Value> for_others;
  for (size_t r = 0; r + 1 < section_cuts_.size(); ++r) {
    int64_t from = std::clamp(section_cuts_[r], begin, end);
    const int64_t to = std::clamp(section_cuts_[r + 1], from, end);
    if (r == static_cast<size_t>(rank_)) from = to;
    HEDDLE_ASSIGN_OR_RETURN(for_others.emplace_back(), SliceRows(rows, from - begin, to - begin));
  }
  return for_others;
}

std::vector<JointWrite::Share> JointWrite::Shares() const {
  const int64_t begin = section_cuts_[static_cast<size_t>(rank_)];
  const int64_t end = section_cuts_[static_cast<size_t>(rank_) + 1];
  std::vector<Share> shares;
  // Of a value without rows rank 0 makes the only file.
  if (whole_.shape.rows == 0 && rank_ == 0) shares.push_back({});
  for (int64_t row = begin; row < end;) {
    const size_t file = FileOf(row);
    const int64_t behind = std::min(end, made_[file].End());
    shares.push_back({file, row, behind});
    row = behind;
  }
  return shares;
}

// 0, and of each file its number and how many bytes this rank has of it; what is kept has their indexes, too.
Result<JointWrite::Given> JointWrite::GiveRows(const Value& rows,
                                               std::span<const Value* const> from_others) const {
  RecordWriter for_all, kept;
  for_all.Put(uint64_t{0});
  for (const Share& share : Shares()) {
    BinaryIndex index;
    const Result<Made> made = GiveShare(share, rows, from_others, &index);
    // What cannot be read has a place in the script that is not that of the write.
    if (made.status().code() == StatusCode::kFailedPrecondition && !made.status().position().IsKnown())
      return Given{.for_all = TextOfFault(made.status())};
    HEDDLE_RETURN_IF_ERROR(made.status());
    for_all.Put(uint64_t{share.file});
    for_all.Put(made->bytes);
    kept.Put(made->rows);
    kept.PutText(index.entries);
    kept.Put(index.blocks);
    kept.Put(index.bytes);
    kept.Put(index.stored);
  }
  return Given{std::move(for_all).Take(), std::move(kept).Take()};
}

Result<JointWrite::Made> JointWrite::GiveShare(const Share& share, const Value& rows,
                                               std::span<const Value* const> from_others,
                                               BinaryIndex* index) const {
  const File& file = made_[share.file];
  const int64_t first = rank_cuts_[static_cast<size_t>(rank_)], last = first + rows.shape().rows;
  // Where this rank's rows alone end that are whole sections: what is behind is joined with others' rows.
  int64_t alone = share.end;
  if (share.end > last)
    alone = std::max(share.begin, file.content.row_begin + (last - file.content.row_begin) /
                                                               file.rows_of_unit * file.rows_of_unit);
  const auto counted = counted_.find(share.file);
  std::optional<int64_t> offset;
  if (share.begin == file.content.row_begin && counted == counted_.end()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string beginning, BeginningOf(file.content, options_));
    offset = static_cast<int64_t>(beginning.size());
  }
  const JointFile place = FileAt(path_, hidden_, share.file, options_);
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<JointBytes> bytes, files_.joint()->Open(place, offset));
  std::optional<Made> made;
  if (counted != counted_.end()) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t more, MoreBytesOfFirstLine(share, rows));
    made = Made{.bytes = counted->second + more, .rows = 0};
  } else if (rows.IsPanels()) {
    bytes->HoldOnDisk();
  } else if (!offset && alone == share.end) {
    HEDDLE_ASSIGN_OR_RETURN(made, GiveOrCount(share, rows, *bytes));
  }
  if (!made && (share.begin < alone || share.begin == share.end))
    HEDDLE_RETURN_IF_ERROR(GiveSections(file, rows, share.begin, alone, *bytes, index));
  if (alone < share.end) {
    HEDDLE_ASSIGN_OR_RETURN(const Value own, SliceRows(rows, alone - first, last - first));
    std::vector<const Value*> pieces = {&own};
    for (const Value* const piece : from_others)
      if (piece->shape().rows > 0) pieces.push_back(piece);
    HEDDLE_ASSIGN_OR_RETURN(const Value joined, JoinRows(pieces));
    HEDDLE_RETURN_IF_ERROR(GiveSection(joined, alone, file.content, options_, SinkOf(*bytes), index));
  }
  if (!made) made = Made{.bytes = bytes->size(), .rows = share.end - share.begin};
  files_.joint()->Hold(place, std::move(bytes));
  return *made;
}

// Gives the sections of rows [begin, end), which this rank has.
Status JointWrite::GiveSections(const File& file, const Value& rows, int64_t begin, int64_t end,
                                JointBytes& bytes, BinaryIndex* index) const {
  const int64_t first = rank_cuts_[static_cast<size_t>(rank_)];
  return VisitRows(rows, whole_, begin - first, end - first, file.rows_of_unit, held_bytes_,
                   [&](int64_t at, const Value& some) {
                     return GiveSection(some, first + at, file.content, options_, SinkOf(bytes), index);
                   });
}

// Begin() has counted the bytes of panels when nobody knew whether a line of them is the first of the file.
Result<int64_t> JointWrite::MoreBytesOfFirstLine(const Share& share, const Value& rows) const {
  const FileContent& content = made_[share.file].content;
  const int64_t line = content.totals.first_filled, first = rank_cuts_[static_cast<size_t>(rank_)];
  if (line < share.begin || line >= share.end) return 0;
  HEDDLE_ASSIGN_OR_RETURN(const Value row, SliceRows(rows, line - first, line + 1 - first));
  const FileContent as_counted{.info = content.info, .row_begin = content.row_begin};
  return BytesOfSection(row, line, content, options_) - BytesOfSection(row, line, as_counted, options_);
}

// Holds what memory has room for, and counts the rest: it is made when it is known where it belongs.
Result<std::optional<JointWrite::Made>> JointWrite::GiveOrCount(const Share& share, const Value& rows,
                                                                JointBytes& bytes) const {
  const FileContent& content = made_[share.file].content;
  const int64_t first = rank_cuts_[static_cast<size_t>(rank_)], count = share.end - share.begin;
  const Counting counting = CountingOf(content, options_);
  if (counting == Counting::kNot) return std::optional<Made>();
  int64_t made = 0;
  if (counting == Counting::kOfRows) {
    const int64_t at_once = RowsOfManyPieces(content, options_);
    for (int64_t next_bytes = kBytesOfManyPieces; made < count && bytes.HasRoom(next_bytes);) {
      const int64_t end = std::min(count, made + at_once), before = bytes.size();
      HEDDLE_ASSIGN_OR_RETURN(const Value some,
                              SliceRows(rows, share.begin + made - first, share.begin + end - first));
      HEDDLE_RETURN_IF_ERROR(
          GiveSection(some, share.begin + made, content, options_, SinkOf(bytes), nullptr));
      next_bytes = bytes.size() - before;
      made = end;
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const Value rest, SliceRows(rows, share.begin + made - first, share.end - first));
  const int64_t counted = BytesOfSection(rest, share.begin + made, content, options_);
  if (IsCancelled(options_.options.cancelled)) return Cancelled("cancelled");
  return std::optional(Made{.bytes = bytes.size() + counted, .rows = made});
}

// The totals as in Begin(); of each file its number, how many bytes this rank has of it, its index, and the
// bytes that are not written yet.
Result<std::string> JointWrite::Place(const Value& rows, const std::string& kept,
                                      std::span<const std::string> of_all) const {
  std::map<uint64_t, int64_t> before, own;  // Bytes of lower ranks, and of this one, by file.
  for (size_t r = 0; r < of_all.size(); ++r) {
    RecordTaker share(of_all[r]);
    if (share.Take<uint64_t>() != 0) return FaultIn(share);
    while (!share.AtEnd()) {
      const auto file = share.Take<uint64_t>();
      const auto bytes = share.Take<int64_t>();
      if (r < static_cast<size_t>(rank_)) before[file] += bytes;
      if (r == static_cast<size_t>(rank_)) own[file] = bytes;
    }
    if (!share.ok()) return MalformedShare();
  }
  RecordTaker made(kept);
  RecordWriter placed;
  placed.PutText(hidden_);
  for (const Share& share : Shares()) {
    const auto rows_made = made.Take<int64_t>();
    if (!made.ok()) return MalformedShare();
    HEDDLE_ASSIGN_OR_RETURN(
        const std::vector<PlacedBytes> left,
        PlaceShare(share, rows, rows_made, before[uint64_t{share.file}], own[uint64_t{share.file}]));
    placed.Put(uint64_t{share.file});
    const FileContent& content = made_[share.file].content;
    content.totals.Put(&placed);
    // The beginning of the file has it.
    const bool begins = content.coding != nullptr && share.begin == content.row_begin;
    placed.PutText(begins ? content.coding->header() : std::string());
    placed.Put(own[uint64_t{share.file}]);
    placed.PutText(made.TakeText());
    placed.Put(made.Take<int64_t>());
    placed.Put(made.Take<uint64_t>());
    placed.Put(made.Take<uint64_t>());
    placed.Put(uint64_t{left.size()});
    for (const PlacedBytes& edge : left) {
      placed.Put(edge.offset);
      placed.PutText(edge.bytes);
    }
  }
  if (!made.ok()) return MalformedShare();
  return std::move(placed).Take();
}

Result<std::vector<PlacedBytes>> JointWrite::PlaceShare(const Share& share, const Value& rows, int64_t made,
                                                        int64_t bytes_before, int64_t own_bytes) const {
  const File& file = made_[share.file];
  const JointFile place = FileAt(path_, hidden_, share.file, options_);
  const std::unique_ptr<JointBytes> bytes = files_.joint()->Take(place);
  if (bytes == nullptr) return Internal("what was to be written to '{}' is not there", path_);
  if (!bytes->is_placed()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string beginning, BeginningOf(file.content, options_));
    HEDDLE_RETURN_IF_ERROR(bytes->PlaceAt(static_cast<int64_t>(beginning.size()) + bytes_before));
  }
  if (share.begin + made < share.end)
    HEDDLE_RETURN_IF_ERROR(GiveSections(file, rows, share.begin + made, share.end, *bytes, nullptr));
  // Else it would overwrite what others have written.
  if (bytes->size() != own_bytes)
    return Internal("'{}': {} bytes were counted, {} written", path_, own_bytes, bytes->size());
  return bytes->Finish();
}

void JointWrite::Abandon() const { files_.joint()->Abandon(hidden_); }

Status FinishJointWrite(std::span<const std::string> of_all, const ValueInfo& whole, const std::string& path,
                        const WriteOptions& write_options, Files& files) {
  struct Sections {
    int64_t bytes = 0;
    BinaryIndex index;
    std::vector<PlacedBytes> left;
  };
  const PackedOptions options = PackingFor(path, write_options);
  std::map<uint64_t, RowTotals> totals;
  std::map<uint64_t, Sections> sections;
  std::map<uint64_t, CodingOfFile> codings;
  std::string hidden;
  for (const std::string& bytes : of_all) {
    RecordTaker share(bytes);
    hidden = share.TakeText();
    while (!share.AtEnd()) {
      const auto file = share.Take<uint64_t>();
      totals[file] = RowTotals::Take(&share);
      if (const std::string header = share.TakeText(); !header.empty()) {
        HEDDLE_ASSIGN_OR_RETURN(codings[file], RowCoding::Of(header, whole.shape.columns));
      }
      Sections& made = sections[file];
      made.bytes += share.Take<int64_t>();
      BinaryIndex index;
      index.entries = share.TakeText();
      index.blocks = share.Take<int64_t>();
      index.bytes = share.Take<uint64_t>();
      index.stored = share.Take<uint64_t>();
      made.index.Append(std::move(index));
      for (auto left = share.Take<uint64_t>(); left > 0 && share.ok(); --left) {
        const auto offset = share.Take<int64_t>();
        made.left.push_back({offset, share.TakeText()});
      }
    }
    if (!share.ok()) return MalformedShare();
  }
  WrittenValue written{.kind = whole.IsFrame() ? Value::Kind::kFrame : Value::Kind::kMatrix,
                       .shape = whole.shape,
                       .schema = whole.schema};
  const std::vector<FileContent> contents =
      FilesOf(whole, write_options, std::move(totals), std::move(codings));
  for (size_t f = 0; f < contents.size(); ++f) {
    Sections& made = sections[uint64_t{f}];
    written.nonzeros += contents[f].totals.nonzeros;
    HEDDLE_ASSIGN_OR_RETURN(std::string beginning, BeginningOf(contents[f], options));
    HEDDLE_ASSIGN_OR_RETURN(std::string end, EndOf(contents[f], made.bytes, std::move(made.index), options));
    const int64_t end_begin = static_cast<int64_t>(beginning.size()) + made.bytes;
    made.left.push_back({0, std::move(beginning)});
    made.left.push_back({end_begin, std::move(end)});
    HEDDLE_RETURN_IF_ERROR(files.joint()->Finish(FileAt(path, hidden, f, options), made.left));
  }
  HEDDLE_RETURN_IF_ERROR(files.joint()->Commit(path, hidden));
  return WriteMetadata(written, path, write_options, files);
}

namespace {

// One file is written as it comes.
Status WriteOneFile(const Value& value, const ValueInfo& info, const std::string& path,
                    const WriteOptions& write_options, Files& files) {
  const PackedOptions options = PackingFor(path, write_options);
  FileContent file = {.info = info, .totals = TotalsOf(value, 0, write_options)};
  HEDDLE_ASSIGN_OR_RETURN(file.coding,
                          CodingOf(info, file.totals, CellsOf(value, write_options), write_options));
  HEDDLE_RETURN_IF_ERROR(files.Replace(path, [&](const ByteSink& sink) -> Status {
    HEDDLE_RETURN_IF_ERROR(GiveBeginning(file, options, sink));
    int64_t bytes = 0;
    BinaryIndex index;
    const ByteSink count = [&](std::string_view piece) {
      bytes += static_cast<int64_t>(piece.size());
      return sink(piece);
    };
    HEDDLE_RETURN_IF_ERROR(GiveSection(value, 0, file, options, count, &index));
    HEDDLE_ASSIGN_OR_RETURN(const std::string end, EndOf(file, bytes, std::move(index), options));
    return sink(end);
  }));
  const WrittenValue written{
      .kind = value.kind(), .shape = info.shape, .nonzeros = file.totals.nonzeros, .schema = info.schema};
  return WriteMetadata(written, path, write_options, files);
}

}  // namespace

Status WriteRows(const Value& value, const std::string& path, const WriteOptions& options, Files& files) {
  ValueInfo info = value.IsFrame() ? ValueInfo::OfFrame(value.shape().rows, value.frame().schema())
                                   : ValueInfo::OfMatrix(value.shape());
  if (value.IsMatrix()) info.element_type = value.matrix().element_type();
  return options.parts == 0 ? WriteOneFile(value, info, path, options, files)
                            : WriteJointly(value, info, path, options, kMostHeldByWrite, files);
}

Status WriteJointly(const Value& rows, const ValueInfo& whole, const std::string& path,
                    const WriteOptions& options, int64_t held_bytes, Files& files) {
  const std::vector<int64_t> cuts = {0, whole.shape.rows};
  JointWrite write(whole, cuts, 0, path, options, held_bytes, files);
  HEDDLE_ASSIGN_OR_RETURN(JointWrite::Begun begun, write.Begin(rows));
  const auto write_all = [&]() -> Status {
    std::string codings;
    if (options.by_groups) {
      const std::string_view cells = begun.cells;
      HEDDLE_ASSIGN_OR_RETURN(codings, write.ChooseCodings({&begun.for_all, 1}, {&cells, 1}));
      begun.cells = {};
    }
    HEDDLE_RETURN_IF_ERROR(write.UseTotals({&begun.for_all, 1}, codings));
    HEDDLE_ASSIGN_OR_RETURN(const JointWrite::Given given, write.GiveRows(rows, {}));
    HEDDLE_ASSIGN_OR_RETURN(const std::string placed, write.Place(rows, given.kept, {&given.for_all, 1}));
    return FinishJointWrite({&placed, 1}, whole, path, options, files);
  };
  const Status status = write_all();
  // A session may go on behind a statement that fails.
  if (!status.ok()) write.Abandon();
  return status;
}

}  // namespace heddle::ops
