// SPDX-License-Identifier: Apache-2.0
#include "cluster/wire/value_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/counted_heap.h"
#include "core/sizes.h"

namespace heddle::cluster {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire form is the memory of a little-endian machine");

struct MatrixDescription {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stored = 0;
  uint8_t format = 0;
  uint8_t element_type = 0;
};
constexpr size_t kMatrixBytes = 27;  // tag, rows, columns, stored, format, element type
constexpr char kScalarTag = 's';
constexpr char kTextTag = 't';  // a long string: its size here, its bytes as values
constexpr size_t kLongTextBytes = 4096;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 32;
constexpr char kMatrixTag = 'm';

template <typename T>
void Append(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

template <typename T>
bool Take(std::string_view* in, T* value) {
  if (in->size() < sizeof(T)) return false;
  std::memcpy(value, in->data(), sizeof(T));
  in->remove_prefix(sizeof(T));
  return true;
}

void AppendText(std::string* out, std::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out->append(text);
}

bool TakeText(std::string_view* in, std::string* text) {
  uint32_t size = 0;
  if (!Take(in, &size) || in->size() < size) return false;
  text->assign(in->substr(0, size));
  in->remove_prefix(size);
  return true;
}

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

std::string Describe(const Value& value) {
  std::string out;
  if (IsLongText(value)) {
    out.push_back(kTextTag);
    Append(&out, static_cast<uint64_t>(value.scalar().AsString().size()));
    return out;
  }
  if (value.IsScalar()) {
    out.push_back(kScalarTag);
    const Scalar& scalar = value.scalar();
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
  const Matrix& matrix = value.matrix();
  out.push_back(kMatrixTag);
  Append(&out, matrix.rows());
  Append(&out, matrix.columns());
  Append(&out, matrix.stored());
  out.push_back(static_cast<char>(matrix.format()));
  out.push_back(static_cast<char>(matrix.element_type()));
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
      !Take(&in, &out->format) || !Take(&in, &out->element_type) || !in.empty())
    return false;
  constexpr int64_t kMost = kMostLength;
  if (out->rows < 0 || out->columns < 0 || out->stored < 0 || out->rows > kMost || out->columns > kMost ||
      out->stored > kMost)
    return false;
  if (out->format > 1 || out->element_type > 1) return false;
  if (out->format == static_cast<uint8_t>(Format::kSparse))
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
  if (bytes[29] > 2) return DataLoss("a frame of unknown section {}", bytes[29]);
  header.kind = static_cast<FrameKind>(bytes[28]);
  header.section = static_cast<Section>(bytes[29]);
  header.slot = bytes[30];
  header.last = bytes[31] != 0;
  return header;
}

OutgoingValue::OutgoingValue(uint64_t request, Result<Value> value)
    : request_(request), failure_(value.status()) {
  if (!value.ok()) return;
  value_ = std::make_shared<const Value>(*std::move(value));
  if (IsLongText(*value_)) {
    const std::string& text = value_->scalar().AsString();
    spans_[spans_size_++] = {Section::kValues, reinterpret_cast<const uint8_t*>(text.data()),
                             static_cast<int64_t>(text.size())};
  }
  if (!value_->IsMatrix()) return;
  const Matrix& matrix = value_->matrix();
  const int64_t element = BytesOf(matrix.element_type());
  auto add = [&](Section section, const void* data, int64_t bytes) {
    if (bytes > 0) spans_[spans_size_++] = {section, static_cast<const uint8_t*>(data), bytes};
  };
  if (matrix.IsSparse()) {
    const int64_t begin = matrix.rows() == 0 ? 0 : matrix.row_offsets()[0];
    add(Section::kRowOffsets, matrix.row_offsets(), matrix.rows() == 0 ? 0 : (matrix.rows() + 1) * 8);
    add(Section::kColumnIndexes, matrix.column_indexes() + begin, matrix.stored() * 4);
    add(Section::kValues, reinterpret_cast<const uint8_t*>(matrix.data<double>()) + begin * element,
        matrix.stored() * element);
  } else {
    add(Section::kValues, matrix.data<double>(), matrix.cells() * element);
  }
}

OutgoingFrame OutgoingValue::Begin() {
  OutgoingFrame frame;
  begun_ = true;
  frame.header.request = request_;
  frame.header.kind = failure_.ok() ? FrameKind::kBegin : FrameKind::kFailed;
  frame.owned = failure_.ok() ? Describe(*value_) : EncodeStatus(failure_);
  frame.header.size = static_cast<uint32_t>(frame.owned.size());
  frame.header.last = spans_size_ == 0;
  ended_ = frame.header.last;
  return frame;
}

std::optional<OutgoingFrame> OutgoingValue::Next() {
  if (ended_) return std::nullopt;
  if (!begun_) return Begin();
  const Span& span = spans_[span_];
  OutgoingFrame frame;
  frame.keep_alive = value_;
  frame.payload = span.data + offset_;
  frame.header.request = request_;
  frame.header.kind = FrameKind::kData;
  frame.header.section = span.section;
  frame.header.offset = static_cast<uint64_t>(offset_);
  frame.header.size = static_cast<uint32_t>(std::min(kChunkBytes, span.bytes - offset_));
  offset_ += frame.header.size;
  if (offset_ == span.bytes) {
    ++span_;
    offset_ = 0;
    ended_ = span_ == spans_size_;
  }
  frame.header.last = ended_;
  return frame;
}

int64_t IncomingValue::SectionBytes(Section section) const {
  if (is_text_) return section == Section::kValues ? static_cast<int64_t>(text_.size()) : 0;
  switch (section) {
    case Section::kRowOffsets: return matrix_.IsSparse() && matrix_.rows() > 0 ? (matrix_.rows() + 1) * 8 : 0;
    case Section::kColumnIndexes: return matrix_.IsSparse() ? stored_ * 4 : 0;
    case Section::kValues: return stored_ * BytesOf(matrix_.element_type());
  }
  return 0;
}

Result<uint8_t*> IncomingValue::Place(const FrameHeader& header) {
  if (!begun_ || is_scalar_ || header.kind != FrameKind::kData)
    return DataLoss("a data frame without a matrix");
  const auto bytes = static_cast<uint64_t>(SectionBytes(header.section));
  if (header.offset > bytes || header.size > bytes - header.offset)
    return DataLoss("a data frame outside its matrix");
  received_ += header.size;
  if (is_text_) return reinterpret_cast<uint8_t*>(text_.data()) + header.offset;
  void* base = matrix_.mutable_data<double>();
  if (header.section == Section::kRowOffsets) base = matrix_.mutable_row_offsets();
  if (header.section == Section::kColumnIndexes) base = matrix_.mutable_column_indexes();
  return static_cast<uint8_t*>(base) + header.offset;
}

Status IncomingValue::Accept(const FrameHeader& header, std::string_view payload) {
  if (header.kind == FrameKind::kFailed) {
    Status failure;
    HEDDLE_RETURN_IF_ERROR(DecodeStatus(payload, &failure));
    return failure.ok() ? DataLoss("a peer failed without a cause") : failure;
  }
  if (header.kind != FrameKind::kBegin || begun_ || payload.empty())
    return DataLoss("a value frame out of order");
  begun_ = true;
  const char tag = payload.front();
  payload.remove_prefix(1);
  if (tag == kScalarTag) {
    is_scalar_ = true;
    HEDDLE_ASSIGN_OR_RETURN(scalar_, DecodeScalar(payload));
    return OkStatus();
  }
  if (tag == kTextTag) {
    uint64_t size = 0;
    if (!Take(&payload, &size) || !payload.empty() || size > kMostTextBytes)
      return DataLoss("a text frame is malformed");
    is_text_ = true;
    return WithinMemory("a text from another worker", [&] {
      text_.resize(size);
      return OkStatus();
    });
  }
  MatrixDescription description;
  if (tag != kMatrixTag || payload.size() + 1 != kMatrixBytes || !DecodeMatrix(payload, &description))
    return DataLoss("a matrix frame is malformed");
  const auto type = static_cast<ElementType>(description.element_type);
  stored_ = description.stored;
  if (description.format == static_cast<uint8_t>(Format::kSparse)) {
    HEDDLE_ASSIGN_OR_RETURN(matrix_, Matrix::Sparse(description.rows, description.columns, stored_, type));
  } else {
    if (stored_ != description.rows * description.columns) return DataLoss("a matrix frame is malformed");
    HEDDLE_ASSIGN_OR_RETURN(matrix_, Matrix::Dense(description.rows, description.columns, type));
  }
  return OkStatus();
}

Result<Value> IncomingValue::Finish() {
  if (!begun_) return DataLoss("a value without a beginning");
  if (is_scalar_) return Value(std::move(scalar_));
  const int64_t expected = SectionBytes(Section::kRowOffsets) + SectionBytes(Section::kColumnIndexes) +
                           SectionBytes(Section::kValues);
  if (received_ != expected) return DataLoss("a value arrived with {} of {} bytes", received_, expected);
  if (is_text_) return Value(Scalar(std::move(text_)));
  if (matrix_.IsSparse() && matrix_.rows() > 0) {
    // Panels keep the offsets of the matrix they were cut from: start at zero here, and trust nothing.
    int64_t* offsets = matrix_.mutable_row_offsets();
    const int64_t first = offsets[0];
    for (int64_t row = 0; row <= matrix_.rows(); ++row) {
      offsets[row] -= first;
      if (offsets[row] < 0 || offsets[row] > stored_ || (row > 0 && offsets[row] < offsets[row - 1]))
        return DataLoss("a sparse matrix arrived with offsets that do not ascend");
    }
    if (offsets[matrix_.rows()] != stored_)
      return DataLoss("a sparse matrix arrived with the wrong number of entries");
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
  Status status;
  if (code != 0) {
    status = Status(static_cast<StatusCode>(code), message);
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

}  // namespace heddle::cluster
