// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// A folder with files, and how they read.
class FormatsTest : public ::testing::Test {
 protected:
  FormatsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-formats-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    files_ = MakeFiles(directory_);
  }
  ~FormatsTest() override { std::filesystem::remove_all(directory_); }

  void Put(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << text;
  }
  std::string Get(const std::string& name) {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// A file of another tool (data/make_data.py and its like) beside the others.
  void PutData(const std::string& name) {
    const std::filesystem::path copy = directory_ + "/" + name;
    std::filesystem::create_directories(copy.parent_path());
    std::filesystem::copy_file(HEDDLE_SOURCE_DIR "/tests/unit/ops/io/formats/data/" + name, copy,
                               std::filesystem::copy_options::overwrite_existing);
  }
  Result<Matrix> Read(const std::string& name, std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    Node node;
    for (auto& [key, value] : attributes) node.SetAttribute(key, value);
    HEDDLE_ASSIGN_OR_RETURN(const ReadOptions options, ResolveReadOptions(node, name, *files_));
    HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options, *files_));
    // In pieces, as several workers would: the rows must not depend on who reads them.
    HEDDLE_ASSIGN_OR_RETURN(Matrix whole, ReadRows(options, summary, 0, summary.shape.rows, *files_));
    const int64_t half = summary.shape.rows / 2;
    HEDDLE_ASSIGN_OR_RETURN(const Matrix top, ReadRows(options, summary, 0, half, *files_));
    HEDDLE_ASSIGN_OR_RETURN(const Matrix bottom,
                            ReadRows(options, summary, half, summary.shape.rows, *files_));
    EXPECT_TRUE(Matrix::SameCells(whole.Rows(0, half), top));
    EXPECT_TRUE(Matrix::SameCells(whole.Rows(half, whole.rows()), bottom));
    return whole;
  }
  /// The cells of a frame, row by row: <missing> where one is.
  static std::vector<std::string> Cells(const Result<Frame>& frame) {
    if (!frame.ok()) return {frame.status().ToString()};
    std::vector<std::string> cells;
    for (int64_t i = 0; i < frame->rows(); ++i)
      for (int64_t j = 0; j < frame->columns(); ++j) {
        cells.emplace_back(frame->IsMissing(i, j) ? "<missing>" : "");
        frame->AppendText(i, j, &cells.back());
      }
    return cells;
  }
  /// The same, as a frame, also in pieces that begin and end inside of blocks.
  Result<Frame> ReadFrame(const std::string& name,
                          std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    Node node;
    node.SetAttribute("data_type", Scalar("frame"));
    for (auto& [key, value] : attributes) node.SetAttribute(key, value);
    HEDDLE_ASSIGN_OR_RETURN(const ReadOptions options, ResolveReadOptions(node, name, *files_));
    HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options, *files_));
    HEDDLE_ASSIGN_OR_RETURN(Frame whole, ReadFrameRows(options, summary, 0, summary.shape.rows, *files_));
    EXPECT_EQ(whole.shape(), summary.shape);
    const int64_t n = summary.shape.rows;
    for (const auto& [begin, end] : {std::pair(int64_t{0}, n / 2),
                                     {n / 2, n},
                                     {n / 2, n / 2},
                                     {n / 3, n - n / 6},
                                     {n / 7, n - n / 14}}) {
      HEDDLE_ASSIGN_OR_RETURN(const Frame rows, ReadFrameRows(options, summary, begin, end, *files_));
      EXPECT_TRUE(Frame::SameCells(whole.Rows(begin, end), rows));
    }
    return whole;
  }
  /// Why a file is not read, and what to do about it, line by line.
  std::string Fault(const std::string& name, std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    const Result<Matrix> matrix = Read(name, std::move(attributes));
    if (matrix.ok()) return "it is read";
    EXPECT_EQ(ExitCode(matrix.status()), 4);
    return matrix.status().ToString();
  }
  Status Write(const Matrix& matrix, const std::string& name, WriteOptions options) {
    return WriteValue(matrix, name, options, *files_);
  }

  std::string directory_;
  std::unique_ptr<Files> files_;
};

inline Matrix Make(int64_t rows, int64_t columns, const std::vector<double>& cells) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return matrix;
}

inline void ExpectCells(const Result<Matrix>& matrix, int64_t rows, int64_t columns,
                        const std::vector<double>& cells) {
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  ASSERT_EQ(matrix->shape(), (Shape{rows, columns}));
  EXPECT_TRUE(Matrix::SameCells(*matrix, Make(rows, columns, cells)));
}

inline const double kNaN = std::numeric_limits<double>::quiet_NaN();
inline const double kInf = std::numeric_limits<double>::infinity();

}  // namespace heddle::ops
