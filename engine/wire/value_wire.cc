// SPDX-License-Identifier: Apache-2.0
#include "engine/wire/value_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/memory/counted_heap.h"
#include "core/status_numbers.h"
#include "core/values/column_groups_bytes.h"
#include "core/values/sizes.h"
#include "engine/wire/bytes.h"
#include "engine/wire/flat_groups.h"

namespace heddle::engine {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire form is the memory of a little-endian machine");

struct MatrixDescription {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stored = 0;
  uint8_t storage = 0;
  uint8_t element_type = 0;
};
constexpr size_t kMatrixBytes = 27;  // tag, rows, columns, stored, storage, element type
constexpr char kScalarTag = 's';
constexpr char kTextTag = 't';  // a long string: its size here, its bytes as values
constexpr size_t kLongTextBytes = 4096;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 32;
constexpr char kMatrixTag = 'm';
constexpr char kGroupsTag = 'g';  // a compressed matrix: its bytes here, and as values
constexpr uint64_t kMostGroupsBytes = uint64_t{1} << 46;
constexpr char kFrameTag = 'f';  // rows, bytes of the schema
constexpr uint64_t kMostSchemaBytes = uint64_t{1} << 32;

template <typename T>
void Put(std::array<uint8_t, kHeaderBytes>* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof(T));
}

template <typename T>
T Get(const uint8_t* bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof(T));
  return value;
}

bool IsLongText(const Value& value) {
  return value.IsScalar() && value.scalar().IsString() && value.scalar().AsString().size() > kLongTextBytes;
}

std::string DescribeScalar(const Value& value) {
  std::string out;
  const Scalar& scalar = value.scalar();
  if (IsLongText(value)) {
    out.push_back(kTextTag);
    Append(&out, static_cast<uint64_t>(scalar.AsString().size()));
    return out;
  }
  out.push_back(kScalarTag);
  out.push_back(static_cast<char>(scalar.type()));
  if (scalar.IsString()) {
    out.append(scalar.AsString());
  } else if (scalar.IsDouble()) {
    Append(&out, scalar.AsDouble());
  } else {
    Append(&out, scalar.AsInteger());
  }
  return out;
}

std::string DescribeGroups(const Buffer& flat) {
  std::string out;
  out.push_back(kGroupsTag);
  Append(&out, static_cast<uint64_t>(flat.bytes()));
  return out;
}

std::string DescribeMatrix(const Matrix& matrix) {
  std::string out;
  out.push_back(kMatrixTag);
  Append(&out, matrix.rows());
  Append(&out, matrix.columns());
  Append(&out, matrix.stored());
  out.push_back(static_cast<char>(matrix.storage()));
  out.push_back(static_cast<char>(matrix.element_type()));
  return out;
}

std::string DescribeFrame(const heddle::Frame& frame, size_t schema_bytes) {
  std::string out;
  out.push_back(kFrameTag);
  Append(&out, frame.rows());
  Append(&out, static_cast<uint64_t>(schema_bytes));
  return out;
}

Result<Scalar> DecodeScalar(std::string_view in) {
  uint8_t type = 0;
  if (!Take(&in, &type)) return DataLoss("a scalar frame is cut off");
  switch (static_cast<ValueType>(type)) {
    case ValueType::kString: return Scalar(std::string(in));
    case ValueType::kDouble: {
      double x = 0;
      if (in.size() != sizeof(x) || !Take(&in, &x)) break;
      return Scalar(x);
    }
    case ValueType::kInteger:
    case ValueType::kBoolean: {
      int64_t x = 0;
      if (in.size() != sizeof(x) || !Take(&in, &x)) break;
      if (static_cast<ValueType>(type) == ValueType::kInteger) return Scalar(x);
      return Scalar(x != 0);
    }
    case ValueType::kUnknown: break;
  }
  return DataLoss("a scalar frame is malformed");
}

bool DecodeMatrix(std::string_view in, MatrixDescription* out) {
  if (!Take(&in, &out->rows) || !Take(&in, &out->columns) || !Take(&in, &out->stored) ||
      !Take(&in, &out->storage) || !Take(&in, &out->element_type) || !in.empty())
    return false;
  constexpr int64_t kMost = kMostLength;
  if (out->rows < 0 || out->columns < 0 || out->stored < 0 || out->rows > kMost || out->columns > kMost ||
      out->stored > kMost)
    return false;
  if (out->storage > 1 || out->element_type > 1) return false;
  if (out->storage == static_cast<uint8_t>(Storage::kCsr))
    return out->columns <= std::numeric_limits<int32_t>::max();
  return out->columns == 0 || out->rows <= kMost / out->columns;
}

}  // namespace

std::array<uint8_t, kHeaderBytes> FrameHeader::Encode() const {
  std::array<uint8_t, kHeaderBytes> bytes{};
  Put(&bytes, 0, request);
  Put(&bytes, 8, offset);
  Put(&bytes, 16, run);
  Put(&bytes, 20, register_id);
  Put(&bytes, 24, size);
  bytes[28] = static_cast<uint8_t>(kind);
  bytes[29] = static_cast<uint8_t>(section);
  bytes[30] = slot;
  bytes[31] = last ? 1 : 0;
  return bytes;
}

Result<FrameHeader> FrameHeader::Decode(const uint8_t* bytes) {
  FrameHeader header;
  header.request = Get<uint64_t>(bytes, 0);
  header.offset = Get<uint64_t>(bytes, 8);
  header.run = Get<uint32_t>(bytes, 16);
  header.register_id = Get<int32_t>(bytes, 20);
  header.size = Get<uint32_t>(bytes, 24);
  if (bytes[28] < 1 || bytes[28] > 4) return DataLoss("a frame of unknown kind {}", bytes[28]);
  if (bytes[29] >= kSections) return DataLoss("a frame of unknown section {}", bytes[29]);
  header.kind = static_cast<FrameKind>(bytes[28]);
  header.section = static_cast<Section>(bytes[29]);
  header.slot = bytes[30];
  header.last = bytes[31] != 0;
  return header;
}

OutgoingValue::OutgoingValue(uint64_t request, Result<Value> value, int64_t piece_bytes)
    : request_(request), piece_bytes_(piece_bytes), failure_(value.status()) {
  if (!value.ok()) return;
  if (value->IsMatrix() && value->matrix().IsCompressed()) {
    Result<std::shared_ptr<const Buffer>> flat = SharedFlatGroups(value->matrix());
    failure_ = flat.status();
    if (!flat.ok()) return;
    flat_ = *std::move(flat);
    AddSpan({Section::kValues, flat_->data(), flat_->bytes()});
    return;
  }
  value_ = std::make_shared<const Value>(*std::move(value));
  switch (value_->kind()) {
    case Value::Kind::kScalar:
      if (const Scalar& scalar = value_->scalar(); IsLongText(*value_))
        AddSpan({Section::kValues, scalar.AsString().data(), static_cast<int64_t>(scalar.AsString().size())});
      break;
    case Value::Kind::kMatrix: AddMatrix(value_->matrix()); break;
    case Value::Kind::kFrame: AddFrame(value_->frame()); break;
    case Value::Kind::kPanels: HEDDLE_CHECK(false, "panels are put together before they travel");
  }
}

void OutgoingValue::AddSpan(Span span) {
  if (span.bytes > 0) spans_.push_back(span);
}

void OutgoingValue::AddMatrix(const Matrix& matrix) {
  const int64_t element = BytesOf(matrix.element_type());
  if (!matrix.IsSparse()) return AddSpan({Section::kValues, matrix.data<double>(), matrix.cells() * element});
  const int64_t begin = matrix.rows() == 0 ? 0 : matrix.row_offsets()[0];
  AddSpan({Section::kRowOffsets, matrix.row_offsets(), matrix.rows() == 0 ? 0 : (matrix.rows() + 1) * 8});
  AddSpan({Section::kColumnIndexes, matrix.column_indexes() + begin, matrix.stored() * 4});
  AddSpan({Section::kValues, matrix.data<char>() + begin * element, matrix.stored() * element});
}

void OutgoingValue::AddFrame(const heddle::Frame& frame) {
  schema_ = EncodeColumns(frame);
  AddSpan({Section::kSchema, schema_.data(), static_cast<int64_t>(schema_.size())});
  int64_t at = 0;
  for (const ColumnPart& part : PartsOf(frame)) {
    AddSpan({Section::kValues, part.data, part.bytes, at});
    at += part.bytes;
  }
}

std::string OutgoingValue::Describe() const {
  if (flat_ != nullptr) return DescribeGroups(*flat_);
  switch (value_->kind()) {
    case Value::Kind::kScalar: return DescribeScalar(*value_);
    case Value::Kind::kMatrix: return DescribeMatrix(value_->matrix());
    case Value::Kind::kFrame: return DescribeFrame(value_->frame(), schema_.size());
    case Value::Kind::kPanels: break;
  }
  HEDDLE_CHECK(false, "values of every kind can travel");
}

OutgoingFrame OutgoingValue::Begin() {
  OutgoingFrame frame;
  begun_ = true;
  frame.header.request = request_;
  frame.header.kind = failure_.ok() ? FrameKind::kBegin : FrameKind::kFailed;
  frame.owned = failure_.ok() ? Describe() : EncodeStatus(failure_);
  frame.header.size = static_cast<uint32_t>(frame.owned.size());
  frame.header.last = spans_.empty();
  ended_ = frame.header.last;
  return frame;
}

std::optional<OutgoingFrame> OutgoingValue::Next() {
  if (ended_) return std::nullopt;
  if (!begun_) return Begin();
  const Span& span = spans_[span_];
  OutgoingFrame frame;
  frame.keep_alive = flat_ != nullptr ? std::shared_ptr<const void>(flat_) : value_;
  frame.payload = static_cast<const char*>(span.data) + offset_;
  frame.header.request = request_;
  frame.header.kind = FrameKind::kData;
  frame.header.section = span.section;
  frame.header.offset = static_cast<uint64_t>(span.begin + offset_);
  frame.header.size = static_cast<uint32_t>(std::min(piece_bytes_, span.bytes - offset_));
  offset_ += frame.header.size;
  if (offset_ == span.bytes) {
    ++span_;
    offset_ = 0;
    ended_ = span_ == spans_.size();
  }
  frame.header.last = ended_;
  return frame;
}

int64_t IncomingValue::SectionBytes(Section section) const {
  const bool is_values = section == Section::kValues;
  switch (form_) {
    case Form::kNone:
    case Form::kScalar: return 0;
    case Form::kText: return is_values ? static_cast<int64_t>(text_.size()) : 0;
    case Form::kGroups: return is_values ? groups_->bytes() : 0;
    case Form::kFrame:
      return is_values ? frame_.bytes() : section == Section::kSchema ? frame_.schema_bytes() : 0;
    case Form::kMatrix: break;
  }
  switch (section) {
    case Section::kRowOffsets: return matrix_.IsSparse() && matrix_.rows() > 0 ? (matrix_.rows() + 1) * 8 : 0;
    case Section::kColumnIndexes: return matrix_.IsSparse() ? stored_ * 4 : 0;
    case Section::kValues: return stored_ * BytesOf(matrix_.element_type());
    case Section::kSchema: return 0;
  }
  return 0;
}

// Of a frame, whose schema says how many bytes they have.
Status IncomingValue::MakeColumns() {
  if (received_[static_cast<size_t>(Section::kSchema)] != static_cast<uint64_t>(frame_.schema_bytes()))
    return DataLoss("the columns of a frame came before its schema");
  return frame_.MakeColumns();
}

Result<uint8_t*> IncomingValue::Place(const FrameHeader& header) {
  if (form_ == Form::kNone || form_ == Form::kScalar || header.kind != FrameKind::kData)
    return DataLoss("a data frame without a matrix");
  if (form_ == Form::kFrame && header.section == Section::kValues) HEDDLE_RETURN_IF_ERROR(MakeColumns());
  const auto bytes = static_cast<uint64_t>(SectionBytes(header.section));
  if (header.offset > bytes || header.size > bytes - header.offset)
    return DataLoss("a data frame outside its matrix");
  uint64_t& received = received_[static_cast<size_t>(header.section)];
  if (header.offset != received) return DataLoss("a data frame out of order");
  received += header.size;
  void* base = nullptr;
  switch (form_) {
    case Form::kNone:
    case Form::kScalar: break;
    case Form::kText: base = text_.data(); break;
    case Form::kGroups: base = groups_->data(); break;
    case Form::kFrame:
      if (header.section == Section::kSchema) {
        base = frame_.schema_data();
        break;
      }
      return frame_.Place(header.offset, header.size);
    case Form::kMatrix:
      base = matrix_.mutable_data<double>();
      if (header.section == Section::kRowOffsets) base = matrix_.mutable_row_offsets();
      if (header.section == Section::kColumnIndexes) base = matrix_.mutable_column_indexes();
      break;
  }
  return static_cast<uint8_t*>(base) + header.offset;
}

Status IncomingValue::Accept(const FrameHeader& header, std::string_view payload) {
  if (header.kind == FrameKind::kFailed) {
    Status failure;
    HEDDLE_RETURN_IF_ERROR(DecodeStatus(payload, &failure));
    return failure.ok() ? DataLoss("a peer failed without a cause") : failure;
  }
  if (header.kind != FrameKind::kBegin || form_ != Form::kNone || payload.empty())
    return DataLoss("a value frame out of order");
  const char tag = payload.front();
  payload.remove_prefix(1);
  switch (tag) {
    case kScalarTag: {
      form_ = Form::kScalar;
      HEDDLE_ASSIGN_OR_RETURN(scalar_, DecodeScalar(payload));
      return OkStatus();
    }
    case kTextTag: {
      uint64_t size = 0;
      if (!Take(&payload, &size) || !payload.empty() || size > kMostTextBytes)
        return DataLoss("a text frame is malformed");
      form_ = Form::kText;
      return WithinMemory("a text from another worker", [&] {
        text_.resize(size);
        return OkStatus();
      });
    }
    case kFrameTag: {
      int64_t rows = 0;
      uint64_t schema_bytes = 0;
      if (!Take(&payload, &rows) || !Take(&payload, &schema_bytes) || !payload.empty() || rows < 0 ||
          rows > kMostLength || schema_bytes > kMostSchemaBytes)
        return DataLoss("a frame of columns is malformed");
      form_ = Form::kFrame;
      return frame_.Begin(rows, static_cast<int64_t>(schema_bytes));
    }
    case kMatrixTag: form_ = Form::kMatrix; return BeginMatrix(payload);
    case kGroupsTag: form_ = Form::kGroups; return BeginGroups(payload);
    default: return DataLoss("a matrix frame is malformed");
  }
}

Status IncomingValue::BeginMatrix(std::string_view payload) {
  MatrixDescription description;
  if (payload.size() + 1 != kMatrixBytes || !DecodeMatrix(payload, &description))
    return DataLoss("a matrix frame is malformed");
  const auto type = static_cast<ElementType>(description.element_type);
  stored_ = description.stored;
  if (description.storage == static_cast<uint8_t>(Storage::kCsr)) {
    HEDDLE_ASSIGN_OR_RETURN(matrix_, Matrix::Sparse(description.rows, description.columns, stored_, type));
  } else {
    if (stored_ != description.rows * description.columns) return DataLoss("a matrix frame is malformed");
    HEDDLE_ASSIGN_OR_RETURN(matrix_, Matrix::Dense(description.rows, description.columns, type));
  }
  return OkStatus();
}

Status IncomingValue::BeginGroups(std::string_view payload) {
  uint64_t bytes = 0;
  const bool is_sound = Take(&payload, &bytes) && payload.empty() && bytes <= kMostGroupsBytes;
  HEDDLE_ASSIGN_OR_RETURN(groups_, Buffer::Allocate(is_sound ? static_cast<int64_t>(bytes) : 0));
  return is_sound ? OkStatus() : DataLoss("a frame of a compressed matrix is malformed");
}

Result<Value> IncomingValue::Finish() {
  if (form_ == Form::kNone) return DataLoss("a value without a beginning");
  if (form_ == Form::kFrame) HEDDLE_RETURN_IF_ERROR(MakeColumns());
  for (size_t i = 0; i < kSections; ++i) {
    const auto expected = static_cast<uint64_t>(SectionBytes(static_cast<Section>(i)));
    if (received_[i] != expected)
      return DataLoss("a value arrived with {} of {} bytes", received_[i], expected);
  }
  switch (form_) {
    case Form::kNone: break;
    case Form::kScalar: return Value(std::move(scalar_));
    case Form::kText: return Value(Scalar(std::move(text_)));
    case Form::kMatrix: return FinishMatrix();
    case Form::kGroups: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, UnflattenGroups({static_cast<const char*>(groups_->data()),
                                                              static_cast<size_t>(groups_->bytes())}));
      return Value(std::move(matrix));
    }
    case Form::kFrame: {
      HEDDLE_ASSIGN_OR_RETURN(heddle::Frame frame, frame_.Finish());
      return Value(std::move(frame));
    }
  }
  HEDDLE_CHECK(false, "values of every form end");
}

Result<Value> IncomingValue::FinishMatrix() {
  if (matrix_.IsSparse() && matrix_.rows() > 0) {
    // Panels keep the offsets of the matrix they were cut from: start at zero here, and trust nothing.
    HEDDLE_RETURN_IF_ERROR(
        StartAtZero(matrix_.mutable_row_offsets(), matrix_.rows(), stored_, "a sparse matrix"));
    const int32_t* columns = matrix_.column_indexes();
    for (int64_t entry = 0; entry < stored_; ++entry)
      if (columns[entry] < 0 || columns[entry] >= matrix_.columns())
        return DataLoss("a sparse matrix arrived with a column outside it");
  }
  return Value(std::move(matrix_));
}

std::string EncodeValue(const Value& value) {
  std::string out;
  OutgoingValue outgoing(0, value);
  while (const std::optional<OutgoingFrame> frame = outgoing.Next()) {
    const auto header = frame->header.Encode();
    out.append(reinterpret_cast<const char*>(header.data()), header.size());
    if (frame->payload == nullptr) {
      out.append(frame->owned);
    } else {
      out.append(static_cast<const char*>(frame->payload), frame->header.size);
    }
  }
  return out;
}

Result<Value> DecodeValue(std::string_view frames) {
  IncomingValue incoming;
  while (frames.size() >= kHeaderBytes) {
    HEDDLE_ASSIGN_OR_RETURN(const FrameHeader header,
                            FrameHeader::Decode(reinterpret_cast<const uint8_t*>(frames.data())));
    frames.remove_prefix(kHeaderBytes);
    if (frames.size() < header.size) break;
    if (header.kind == FrameKind::kData) {
      HEDDLE_ASSIGN_OR_RETURN(uint8_t* const place, incoming.Place(header));
      std::memcpy(place, frames.data(), header.size);
    } else {
      HEDDLE_RETURN_IF_ERROR(incoming.Accept(header, frames.substr(0, header.size)));
    }
    frames.remove_prefix(header.size);
    if (header.last) return incoming.Finish();
  }
  return DataLoss("a value arrived cut off");
}

std::string EncodeStatus(const Status& status) {
  std::string out;
  Append(&out, static_cast<uint8_t>(status.code()));
  AppendText(&out, status.message());
  AppendText(&out, status.position().file);
  Append(&out, status.position().line);
  Append(&out, status.position().column);
  Append(&out, static_cast<uint32_t>(status.notes().size()));
  for (const std::string& note : status.notes()) AppendText(&out, note);
  return out;
}

Status DecodeStatus(std::string_view bytes, Status* decoded) {
  uint8_t code = 0;
  std::string message;
  SourcePosition position;
  uint32_t notes = 0;
  if (!Take(&bytes, &code) || !TakeText(&bytes, &message) || !TakeText(&bytes, &position.file) ||
      !Take(&bytes, &position.line) || !Take(&bytes, &position.column) || !Take(&bytes, &notes) ||
      notes > 1000)
    return DataLoss("a status arrived malformed");
  const std::optional<StatusCode> known = FindStatusCode(code);
  if (!known) return DataLoss("a status arrived malformed");
  Status status;
  if (*known != StatusCode::kOk) {
    status = Status(*known, message);
    if (position.IsKnown()) status = status.At(position);
  }
  for (uint32_t i = 0; i < notes; ++i) {
    std::string note;
    if (!TakeText(&bytes, &note)) return DataLoss("a status arrived malformed");
    status = status.WithNote(std::move(note));
  }
  *decoded = status;
  return OkStatus();
}

}  // namespace heddle::engine
