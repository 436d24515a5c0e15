// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <vector>

#include "actor/run_number.h"
#include "core/status_numbers.h"
#include "engine/wire/bytes.h"
#include "engine/wire/frame_wire.h"
#include "engine/wire/small_values.h"
#include "engine/wire/value_wire.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/compressed/random_groups.h"

namespace heddle::cluster {
namespace {

// Carries every frame of `value` over and puts it together again; counts the frames.
Result<Value> Carry(Value value, int* frames = nullptr) {
  engine::OutgoingValue outgoing(7, std::move(value));
  engine::IncomingValue incoming;
  while (std::optional<engine::OutgoingFrame> frame = outgoing.Next()) {
    if (frames != nullptr) ++*frames;
    const auto bytes = frame->header.Encode();
    HEDDLE_ASSIGN_OR_RETURN(const engine::FrameHeader header, engine::FrameHeader::Decode(bytes.data()));
    EXPECT_EQ(header.request, 7u);
    EXPECT_LE(header.size, engine::kChunkBytes);
    if (header.kind == engine::FrameKind::kData) {
      HEDDLE_ASSIGN_OR_RETURN(uint8_t * place, incoming.Place(header));
      std::memcpy(place, frame->payload, header.size);
    } else {
      HEDDLE_RETURN_IF_ERROR(incoming.Accept(header, frame->owned));
    }
    if (header.last) return incoming.Finish();
  }
  return Internal("no last frame");
}

Matrix Numbered(int64_t rows, int64_t columns) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) matrix.mutable_data()[i] = static_cast<double>(i) * 0.5 - 3;
  return matrix;
}

Matrix Diagonal(int64_t size) {
  Matrix matrix = *Matrix::Sparse(size, size, size);
  for (int64_t i = 0; i < size; ++i) {
    matrix.mutable_row_offsets()[i] = i;
    matrix.mutable_column_indexes()[i] = static_cast<int32_t>(i);
    matrix.mutable_values()[i] = static_cast<double>(i + 1);
  }
  matrix.mutable_row_offsets()[size] = size;
  return matrix;
}

TEST(ValueWireTest, ScalarsOfEveryTypeArriveUnchanged) {
  const Scalar scalars[] = {Scalar(0.1),
                            Scalar(-0.0),
                            Scalar(std::numeric_limits<double>::infinity()),
                            Scalar(int64_t{-9'000'000'000'000'000'001}),
                            Scalar(true),
                            Scalar(false),
                            Scalar(""),
                            Scalar(std::string("tab\t\xff\0nul", 9))};
  for (const Scalar& scalar : scalars) {
    const Result<Value> carried = Carry(scalar);
    ASSERT_TRUE(carried.ok()) << carried.status().ToString();
    ASSERT_TRUE(carried->IsScalar());
    EXPECT_EQ(carried->scalar(), scalar);
    EXPECT_EQ(carried->scalar().type(), scalar.type());
  }
  EXPECT_TRUE(std::isnan(Carry(Scalar(std::nan("")))->scalar().AsDouble()));
}

TEST(ValueWireTest, DenseMatricesAreCutIntoChunks) {
  int frames = 0;
  const Matrix matrix = Numbered(300, 1000);  // 2.4 MB
  const Result<Value> carried = Carry(matrix, &frames);
  ASSERT_TRUE(carried.ok()) << carried.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(carried->matrix(), matrix));
  EXPECT_EQ(frames, 1 + 3);
}

TEST(ValueWireTest, EmptyMatricesKeepTheirShape) {
  for (const Shape shape : {Shape{0, 0}, Shape{0, 5}, Shape{5, 0}}) {
    const Result<Value> carried = Carry(*Matrix::Dense(shape.rows, shape.columns));
    ASSERT_TRUE(carried.ok()) << carried.status().ToString();
    EXPECT_EQ(carried->matrix().shape(), shape);
  }
}

TEST(ValueWireTest, APanelOfASparseMatrixArrivesWithOffsetsFromZero) {
  const Matrix panel = Diagonal(100).Rows(30, 60);
  const Result<Value> carried = Carry(panel);
  ASSERT_TRUE(carried.ok()) << carried.status().ToString();
  ASSERT_TRUE(carried->matrix().IsSparse());
  EXPECT_EQ(carried->matrix().row_offsets()[0], 0);
  EXPECT_TRUE(Matrix::SameCells(carried->matrix(), panel));
}

TEST(ValueWireTest, AnEmptySparsePanelArrives) {
  const Matrix matrix = *Matrix::Sparse(4, 3, 0);
  const Result<Value> carried = Carry(matrix);
  ASSERT_TRUE(carried.ok()) << carried.status().ToString();
  EXPECT_EQ(carried->matrix().stored(), 0);
}

void ExpectCarried(const heddle::Frame& frame) {
  const Result<Value> carried = Carry(frame);
  ASSERT_TRUE(carried.ok()) << carried.status().ToString();
  ASSERT_TRUE(carried->IsFrame());
  EXPECT_TRUE(heddle::Frame::SameCells(carried->frame(), frame));
  EXPECT_EQ(*carried->frame().schema(), *frame.schema());
  EXPECT_EQ(carried->bytes(), frame.bytes());
}

TEST(ValueWireTest, FramesOfEveryColumnTypeArriveUnchanged) {
  ExpectCarried(NumberedFrame(100));
  ExpectCarried(NumberedFrame(100, 0, /*may_miss=*/false));
  ExpectCarried(NumberedFrame(0));
  ExpectCarried(heddle::Frame());
  ExpectCarried(heddle::Frame(std::make_shared<const Schema>(Schema{{ColumnType::kString}, {}}),
                              {*Column::OfTexts(std::vector<std::string_view>{"", "", ""})}));
}

TEST(ValueWireTest, RowsOfAFrameArriveWithOffsetsFromZero) {
  const heddle::Frame rows = NumberedFrame(1000).Rows(333, 512);
  ASSERT_NE(rows.column(0).offsets()[0], 0);
  ExpectCarried(rows);
  EXPECT_EQ(Carry(rows)->frame().column(0).offsets()[0], 0);
  ExpectCarried(rows.Rows(9, 9));
}

TEST(ValueWireTest, LongColumnsAreCutIntoChunks) {
  int frames = 0;
  const heddle::Frame frame(std::make_shared<const Schema>(Schema{{ColumnType::kFloat64}, {}}),
                            {*Column::OfDoubles(std::vector<double>(300'000, 1.5))});  // 2.4 MB
  ASSERT_TRUE(Carry(frame, &frames).ok());
  EXPECT_EQ(frames, 1 + 1 + 3);
}

TEST(ValueWireTest, SmallFramesTravelWithTheirMessage) {
  const std::string frames = engine::SmallValues::Encode(NumberedFrame(5));
  ASSERT_FALSE(frames.empty());
  EXPECT_TRUE(heddle::Frame::SameCells(engine::DecodeValue(frames)->frame(), NumberedFrame(5)));
  for (size_t size = 0; size < frames.size(); ++size)
    EXPECT_FALSE(engine::DecodeValue(frames.substr(0, size)).ok());
  EXPECT_EQ(engine::SmallValues::Encode(NumberedFrame(1000)), "");
  // Names of columns count: no record of a ring would have room for them.
  Schema schema;
  schema.types.assign(3000, ColumnType::kFloat64);
  schema.names.assign(3000, "a name of a column");
  const heddle::Frame empty(std::make_shared<const Schema>(schema),
                            std::vector<Column>(3000, *Column::OfDoubles(std::vector<double>())));
  EXPECT_EQ(engine::SmallValues::Encode(empty), "");
}

// What a peer sends as one column of two rows: `columns` for EncodeColumns, then `parts`.
Status ErrorOfColumn(const std::string& columns, const std::string& parts) {
  engine::IncomingFrame incoming;
  HEDDLE_RETURN_IF_ERROR(incoming.Begin(2, static_cast<int64_t>(columns.size())));
  std::memcpy(incoming.schema_data(), columns.data(), columns.size());
  HEDDLE_RETURN_IF_ERROR(incoming.MakeColumns());
  HEDDLE_ASSIGN_OR_RETURN(uint8_t * place, incoming.Place(0, parts.size()));
  std::memcpy(place, parts.data(), parts.size());
  return incoming.Finish().status();
}

std::string ColumnBytes(ColumnType type, bool may_miss, int64_t text_bytes) {
  std::string out;
  engine::Append(&out, uint64_t{1});
  engine::Append(&out, uint8_t{0});
  engine::Append(&out, static_cast<uint8_t>(type));
  engine::Append(&out, static_cast<uint8_t>(may_miss));
  engine::Append(&out, text_bytes);
  return out;
}

TEST(ValueWireTest, AnUnsoundFrameIsRefused) {
  const auto offsets = [](int64_t a, int64_t b, int64_t c) {
    std::string out;
    for (const int64_t offset : {a, b, c}) engine::Append(&out, offset);
    return out;
  };
  const std::string texts = ColumnBytes(ColumnType::kString, false, 0);
  EXPECT_TRUE(ErrorOfColumn(texts, offsets(7, 7, 7)).ok());
  EXPECT_EQ(ErrorOfColumn(texts, offsets(7, 8, 7)).message(),
            "a column of texts arrived with offsets that do not ascend");
  EXPECT_EQ(ErrorOfColumn(ColumnBytes(ColumnType::kString, false, 4), offsets(0, 1, 3)).message(),
            "a column of texts arrived with the wrong number of entries");
  EXPECT_TRUE(ErrorOfColumn(ColumnBytes(ColumnType::kBoolean, false, 0), {"\1\0", 2}).ok());
  EXPECT_EQ(ErrorOfColumn(ColumnBytes(ColumnType::kBoolean, false, 0), "\1\2").message(),
            "a column arrived with truth values that are neither 0 nor 1");
  for (const std::string& columns :
       {ColumnBytes(ColumnType::kInteger64, false, 4), ColumnBytes(static_cast<ColumnType>(99), false, 0),
        ColumnBytes(ColumnType::kString, false, -1), ColumnBytes(ColumnType::kString, false, 0) + "x",
        ColumnBytes(ColumnType::kString, false, 0).substr(0, 12), std::string()})
    EXPECT_EQ(ErrorOfColumn(columns, "").message(), "the columns of a frame arrived malformed");
}

TEST(ValueWireTest, BytesOutsideTheirColumnAreRefused) {
  const std::string columns = ColumnBytes(ColumnType::kInteger64, true, 0);
  engine::IncomingFrame incoming;
  ASSERT_TRUE(incoming.Begin(2, static_cast<int64_t>(columns.size())).ok());
  std::memcpy(incoming.schema_data(), columns.data(), columns.size());
  ASSERT_TRUE(incoming.MakeColumns().ok());
  EXPECT_EQ(incoming.bytes(), 18);
  EXPECT_TRUE(incoming.Place(8, 8).ok());
  EXPECT_TRUE(incoming.Place(16, 2).ok());
  for (const auto& [offset, size] : {std::pair<uint64_t, uint64_t>{8, 9}, {16, 3}, {18, 1}, {UINT64_MAX, 1}})
    EXPECT_EQ(incoming.Place(offset, size).status().code(), StatusCode::kDataLoss);
}

TEST(ValueWireTest, FramesOutsideTheirMatrixAreRefused) {
  engine::OutgoingValue outgoing(1, Value(Numbered(4, 4)));
  engine::IncomingValue incoming;
  const engine::OutgoingFrame begin = *outgoing.Next();
  ASSERT_TRUE(incoming.Accept(begin.header, begin.owned).ok());
  engine::OutgoingFrame data = *outgoing.Next();
  data.header.offset = 8;
  EXPECT_EQ(incoming.Place(data.header).status().message(), "a data frame outside its matrix");
  data.header.offset = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(incoming.Place(data.header).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(incoming.Finish().status().code(), StatusCode::kDataLoss);
}

// What arrives twice would stand for what never came, and memory that nobody wrote would be the value.
TEST(ValueWireTest, BytesThatArriveTwiceAreRefused) {
  engine::OutgoingValue outgoing(1, Value(Numbered(4, 4)));
  engine::IncomingValue incoming;
  const engine::OutgoingFrame begin = *outgoing.Next();
  ASSERT_TRUE(incoming.Accept(begin.header, begin.owned).ok());
  engine::FrameHeader half = outgoing.Next()->header;
  half.size /= 2;
  ASSERT_TRUE(incoming.Place(half).ok());
  EXPECT_EQ(incoming.Place(half).status().message(), "a data frame out of order");
  EXPECT_EQ(incoming.Finish().status().message(), "a value arrived with 64 of 128 bytes");
}

TEST(ValueWireTest, ColumnsBeforeTheirSchemaAreRefused) {
  engine::OutgoingValue outgoing(1, Value(NumberedFrame(3)));
  engine::IncomingValue incoming;
  const engine::OutgoingFrame begin = *outgoing.Next();
  ASSERT_TRUE(incoming.Accept(begin.header, begin.owned).ok());
  engine::FrameHeader values = outgoing.Next()->header;
  values.section = engine::Section::kValues;
  values.size = 1;
  EXPECT_EQ(incoming.Place(values).status().message(), "the columns of a frame came before its schema");
  EXPECT_EQ(incoming.Finish().status().message(), "the columns of a frame came before its schema");
}

// Of one value several peers are sent the bytes at a time; each pull would take memory for them.
TEST(ValueWireTest, TheBytesOfACompressedMatrixAreMadeOnceForAllThatAreSentThem) {
  const Matrix compressed = ops::testing::RandomGroups(Numbered(5000, 3), 7);
  ASSERT_TRUE(compressed.IsCompressed());
  const auto payload = [](engine::OutgoingValue& outgoing) {
    outgoing.Next();
    return outgoing.Next()->payload;
  };
  constexpr int kPeers = 4;
  std::weak_ptr<const void> bytes;
  {
    std::vector<std::future<engine::OutgoingValue>> made;
    for (int i = 0; i < kPeers; ++i)
      made.push_back(
          std::async(std::launch::async, [&] { return engine::OutgoingValue(1, Value(compressed)); }));
    std::vector<engine::OutgoingValue> outgoing;
    for (auto& value : made) outgoing.push_back(value.get());
    outgoing[0].Next();
    const engine::OutgoingFrame frame = *outgoing[0].Next();
    const void* const first = frame.payload;
    bytes = frame.keep_alive;
    for (int i = 1; i < kPeers; ++i) EXPECT_EQ(payload(outgoing[static_cast<size_t>(i)]), first);
    engine::OutgoingValue others(1, Value(compressed.Rows(1, 5000)));
    EXPECT_NE(payload(others), first) << "other rows have other bytes";
  }
  EXPECT_TRUE(bytes.expired()) << "nothing is left when all are sent";
  EXPECT_TRUE(Matrix::SameCells(Carry(compressed)->matrix(), Numbered(5000, 3)));
  EXPECT_TRUE(Matrix::SameCells(Carry(compressed.Rows(1, 5000))->matrix(), Numbered(5000, 3).Rows(1, 5000)));
}

TEST(ValueWireTest, MalformedFramesAreRefused) {
  uint8_t bytes[engine::kHeaderBytes] = {};
  EXPECT_EQ(engine::FrameHeader::Decode(bytes).status().message(), "a frame of unknown kind 0");
  bytes[28] = 1;
  bytes[29] = 77;
  EXPECT_EQ(engine::FrameHeader::Decode(bytes).status().message(), "a frame of unknown section 77");
  engine::FrameHeader begin;
  begin.kind = engine::FrameKind::kBegin;
  const auto fault = [&](const std::string& payload) {
    engine::IncomingValue incoming;
    const Status status = incoming.Accept(begin, payload);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << payload;
    return status.message();
  };
  // What a value of each kind begins with, and then other bytes.
  const auto tag = [](const Value& value) {
    engine::OutgoingValue outgoing(1, value);
    return outgoing.Next()->owned.substr(0, 1);
  };
  EXPECT_EQ(fault(""), "a value frame out of order");
  EXPECT_EQ(fault(tag(Scalar(1.5))), "a scalar frame is cut off");
  EXPECT_EQ(fault(tag(Scalar(1.5)) + std::string(1, static_cast<char>(ValueType::kDouble))),
            "a scalar frame is malformed");
  EXPECT_EQ(fault(tag(Scalar(std::string(3'000'000, 'a'))) + "123"), "a text frame is malformed");
  EXPECT_EQ(fault(tag(NumberedFrame(3)) + "123"), "a frame of columns is malformed");
  EXPECT_EQ(fault(tag(Numbered(2, 2)) + "123"), "a matrix frame is malformed");
  EXPECT_EQ(fault("?123"), "a matrix frame is malformed");

  engine::IncomingValue incoming;
  engine::FrameHeader data;
  data.kind = engine::FrameKind::kData;
  EXPECT_EQ(incoming.Place(data).status().message(), "a data frame without a matrix");
  EXPECT_EQ(incoming.Finish().status().message(), "a value without a beginning");
  EXPECT_EQ(engine::DecodeValue("").status().message(), "a value arrived cut off");
  engine::FrameHeader failed;
  failed.kind = engine::FrameKind::kFailed;
  EXPECT_EQ(incoming.Accept(failed, engine::EncodeStatus(OkStatus())).message(),
            "a peer failed without a cause");
}

TEST(ValueWireTest, AnUnsoundSparseMatrixIsRefused) {
  Matrix matrix = Diagonal(3);
  matrix.mutable_row_offsets()[1] = 7;
  EXPECT_EQ(Carry(matrix).status().code(), StatusCode::kDataLoss);
  matrix = Diagonal(3);
  matrix.mutable_column_indexes()[2] = 3;
  EXPECT_EQ(Carry(matrix).status().message(), "a sparse matrix arrived with a column outside it");
}

TEST(ValueWireTest, AFailureArrivesWithItsCode) {
  engine::OutgoingValue outgoing(1, Cancelled("not published"));
  const engine::OutgoingFrame frame = *outgoing.Next();
  EXPECT_TRUE(frame.header.last);
  engine::IncomingValue incoming;
  const Status status = incoming.Accept(frame.header, frame.owned);
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(status.message(), "not published");
}

TEST(ValueWireTest, SmallValuesTravelInOnePiece) {
  EXPECT_TRUE(
      Matrix::SameCells(engine::DecodeValue(engine::EncodeValue(Diagonal(5)))->matrix(), Diagonal(5)));
  EXPECT_TRUE(
      Matrix::SameCells(engine::DecodeValue(engine::EncodeValue(Numbered(3, 4)))->matrix(), Numbered(3, 4)));
  const std::string frames = engine::EncodeValue(Scalar("abc"));
  EXPECT_EQ(engine::DecodeValue(frames)->scalar().AsString(), "abc");
  for (size_t size = 0; size < frames.size(); ++size)
    EXPECT_FALSE(engine::DecodeValue(frames.substr(0, size)).ok());
}

TEST(SmallValuesTest, ARunDropsThoseOfEarlierRunsOfItsLane) {
  engine::SmallValues values;
  values.Put(actor::MakeRun(0, 5), 1, 0, Value(1.0));
  values.Put(actor::MakeRun(2, 3), 1, 0, Value(2.0));
  values.Put(actor::MakeRun(0, 6), 1, 0, Value(3.0));
  EXPECT_FALSE(values.Take(actor::MakeRun(0, 5), 1, 0).has_value());
  EXPECT_EQ(values.Take(actor::MakeRun(2, 3), 1, 0)->scalar(), Scalar(2.0));
  EXPECT_EQ(values.Take(actor::MakeRun(0, 6), 1, 0)->scalar(), Scalar(3.0));
}

TEST(ValueWireTest, AStatusArrivesWhole) {
  const Status status =
      FailedPrecondition("no: {}", 3).At({"a b.dml", 12, 9}).WithNote("why").WithNote("next");
  Status decoded;
  ASSERT_TRUE(engine::DecodeStatus(engine::EncodeStatus(status), &decoded).ok());
  EXPECT_EQ(decoded.code(), status.code());
  EXPECT_EQ(decoded.ToString(), status.ToString());
  ASSERT_TRUE(engine::DecodeStatus(engine::EncodeStatus(OkStatus()), &decoded).ok());
  EXPECT_TRUE(decoded.ok());
  EXPECT_EQ(engine::DecodeStatus("nonsense", &decoded).message(), "a status arrived malformed");
  // Cut within its notes.
  const std::string whole = engine::EncodeStatus(status);
  EXPECT_EQ(engine::DecodeStatus(whole.substr(0, whole.size() - 1), &decoded).message(),
            "a status arrived malformed");
}

// A number that no code has is no status: as one it would end a process with any exit code, 0 among them.
TEST(ValueWireTest, NumbersThatNoCodeHasAreRefused) {
  std::string bytes = engine::EncodeStatus(Aborted("why"));
  for (int code = 0; code < 256; ++code) {
    bytes[0] = static_cast<char>(code);
    Status decoded;
    const bool is_known = FindStatusCode(code).has_value();
    EXPECT_EQ(engine::DecodeStatus(bytes, &decoded).ok(), is_known) << code;
    EXPECT_EQ(is_known, StatusCodeName(static_cast<StatusCode>(code)) != std::string("unknown")) << code;
  }
  for (const int64_t code : {int64_t{-1}, int64_t{256}, int64_t{265}, INT64_MAX})
    EXPECT_FALSE(FindStatusCode(code).has_value()) << code;
}

}  // namespace
}  // namespace heddle::cluster
