// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "core/programs/distribution.h"
#include "ops/base/held_bytes.h"
#include "ops/frame/row_pieces.h"
#include "ops/frame/text_column.h"
#include "ops/io/files/hidden_names.h"
#include "ops/io/files/joint_files.h"
#include "ops/io/formats/write/joint_write.h"
#include "ops/io/formats/write/record_bytes.h"
#include "tests/unit/ops/io/formats/counted_panels.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

// Several ranks that write one file together, in one process.
namespace heddle::ops {

namespace fs = std::filesystem;

class JointWriteTest : public FormatsTest {
 protected:
  // What there is below a path, by name; hidden names too.
  std::map<std::string, std::string> BytesOf(const std::string& name) {
    std::map<std::string, std::string> bytes;
    const fs::path path = directory_ + "/" + name;
    const auto read = [](const fs::path& file) {
      std::ifstream in(file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::directory_iterator(path))
        bytes[entry.path().filename().string()] = read(entry.path());
    } else if (fs::exists(path)) {
      bytes[""] = read(path);
    }
    return bytes;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static ValueInfo InfoOf(const Value& whole) {
    ValueInfo info = whole.IsFrame() ? ValueInfo::OfFrame(whole.shape().rows, whole.frame().schema())
                                     : ValueInfo::OfMatrix(whole.shape());
    if (whole.IsMatrix()) info.element_type = whole.matrix().element_type();
    return info;
  }

  // The ranks of a job, each with files of its own.
  struct Ranks {
    Ranks(std::string directory, const Value& value, std::vector<int64_t> row_cuts, std::string name,
          const WriteOptions& write_options, int64_t held_bytes = kMostHeldByWrite)
        : whole(value),
          info(InfoOf(value)),
          cuts(std::move(row_cuts)),
          path(std::move(name)),
          options(write_options) {
      for (size_t rank = 0; rank + 1 < cuts.size(); ++rank) {
        files.push_back(MakeFiles(directory));
        rows.push_back(*SliceRows(whole, cuts[rank], cuts[rank + 1]));
      }
      for (size_t rank = 0; rank < files.size(); ++rank)
        writes.emplace_back(info, cuts, static_cast<int32_t>(rank), path, options, held_bytes, *files[rank]);
    }
    Status Begin() {
      std::vector<std::string> begun, cells;
      for (size_t rank = 0; rank < files.size(); ++rank) {
        HEDDLE_ASSIGN_OR_RETURN(JointWrite::Begun of_rank, writes[rank].Begin(rows[rank]));
        begun.push_back(std::move(of_rank.for_all));
        cells.push_back(std::move(of_rank.cells));
      }
      std::string codings;
      if (options.by_groups) {
        const std::vector<std::string_view> of_all(cells.begin(), cells.end());
        HEDDLE_ASSIGN_OR_RETURN(codings, writes[0].ChooseCodings(begun, of_all));
      }
      for (JointWrite& write : writes) HEDDLE_RETURN_IF_ERROR(write.UseTotals(begun, codings));
      return OkStatus();
    }
    Status Give() {
      std::vector<std::vector<Value>> moved;
      for (size_t rank = 0; rank < files.size(); ++rank) {
        HEDDLE_ASSIGN_OR_RETURN(moved.emplace_back(), writes[rank].RowsForOthers(rows[rank]));
      }
      for (size_t rank = 0; rank < files.size(); ++rank) {
        std::vector<const Value*> for_rank;
        for (const std::vector<Value>& of_rank : moved) for_rank.push_back(&of_rank[rank]);
        HEDDLE_ASSIGN_OR_RETURN(given.emplace_back(), writes[rank].GiveRows(rows[rank], for_rank));
        for_all.push_back(given.back().for_all);
      }
      return OkStatus();
    }
    Status Place() {
      for (size_t rank = 0; rank < files.size(); ++rank) {
        HEDDLE_ASSIGN_OR_RETURN(placed.emplace_back(),
                                writes[rank].Place(rows[rank], given[rank].kept, for_all));
      }
      return OkStatus();
    }
    // What the ranks have is panels.
    Ranks& InPanels() {
      for (Value& of_rank : rows) {
        panels.push_back(std::make_shared<CountedPanels>(std::move(of_rank)));
        of_rank = Value(std::shared_ptr<const RowPanels>(panels.back()));
      }
      return *this;
    }
    Status Finish() { return FinishJointWrite(placed, info, path, options, *files[0]); }
    Status All() {
      HEDDLE_RETURN_IF_ERROR(Begin());
      HEDDLE_RETURN_IF_ERROR(Give());
      HEDDLE_RETURN_IF_ERROR(Place());
      return Finish();
    }

    Value whole;
    ValueInfo info;
    std::vector<int64_t> cuts;
    std::string path;
    WriteOptions options;
    std::vector<std::unique_ptr<Files>> files;
    std::vector<Value> rows;
    std::vector<std::shared_ptr<const CountedPanels>> panels;
    std::vector<JointWrite> writes;
    std::vector<JointWrite::Given> given;
    std::vector<std::string> for_all, placed;
  };
  Ranks MakeRanks(const Value& whole, const std::vector<int64_t>& cuts, const std::string& name,
                  const WriteOptions& options, int64_t held_bytes = kMostHeldByWrite) {
    return {directory_, whole, cuts, name, options, held_bytes};
  }

  void ExpectSameFiles(const Value& whole, const std::vector<int64_t>& cuts, const WriteOptions& options) {
    const Status one = WriteValue(whole, "alone", options, *files_);
    for (const bool in_panels : {false, true}) {
      SCOPED_TRACE(in_panels);
      {
        Ranks ranks = MakeRanks(whole, cuts, "together", options);
        const Status all = (in_panels ? ranks.InPanels() : ranks).All();
        std::string told = all.ToString();
        if (const size_t at = told.find("'together'"); at != std::string::npos)
          told.replace(at, 10, "'alone'");
        ASSERT_EQ(told, one.ToString());
      }
      if (!one.ok()) continue;
      EXPECT_EQ(BytesOf("together"), BytesOf("alone"));
      EXPECT_EQ(BytesOf("together.mtd"), BytesOf("alone.mtd"));
      for (const std::string& name : Names()) EXPECT_NE(name[0], '.') << name;
      fs::remove_all(directory_ + "/together");
    }
    fs::remove_all(directory_ + "/alone");
  }
};

// Rows of zeros, of few cells and of many, and numbers of any length.
inline Matrix SomeCells(int64_t rows, int64_t columns) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      matrix.mutable_data()[i * columns + j] =
          i % 3 == 0 || (i + j) % 4 == 0 ? 0 : static_cast<double>(i) / 7 - static_cast<double>(j);
  return matrix;
}

inline Frame SomeTexts(int64_t rows, std::vector<std::string> names) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString, ColumnType::kInteger64};
  schema->names = std::move(names);
  std::vector<std::optional<std::string>> texts;
  Column numbers = *Column::Make(ColumnType::kInteger64, rows, 0, false);
  for (int64_t i = 0; i < rows; ++i) {
    texts.push_back(i % 4 == 3 ? std::optional<std::string>()
                               : std::string(static_cast<size_t>(i % 3), '"') + "\n");
    numbers.mutable_integers()[i] = i * i - 5;
  }
  return {schema, {*TextColumn(texts), numbers}};
}

inline const std::vector<std::vector<int64_t>>& CutsOfTen() {
  static const std::vector<std::vector<int64_t>> cuts = {{0, 10},       {0, 5, 10},
                                                         {0, 1, 2, 10}, {0, 0, 0, 4, 4, 10, 10},
                                                         {0, 10, 10},   {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  return cuts;
}

inline WriteOptions In(FileFormat format, std::optional<Packing> packing = std::nullopt, int64_t parts = 0) {
  WriteOptions options;
  options.format = format;
  options.packing = packing;
  options.parts = parts;
  return options;
}

constexpr FileFormat kOfMatrices[] = {FileFormat::kCsv,    FileFormat::kText, FileFormat::kMatrixMarket,
                                      FileFormat::kLibsvm, FileFormat::kNpy,  FileFormat::kBinary,
                                      FileFormat::kNpz};
constexpr FileFormat kOfFrames[] = {FileFormat::kCsv, FileFormat::kText, FileFormat::kJsonl,
                                    FileFormat::kBinary, FileFormat::kArff};

}  // namespace heddle::ops
