// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/value.h"
#include "engine/wire/frame_wire.h"

// How a value travels between executors: frames of a 32-byte little-endian header and a payload of at most
// kChunkBytes (runtime reference 5.6). Nothing here knows gRPC.
namespace heddle::engine {

constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr size_t kHeaderBytes = 32;

enum class FrameKind : uint8_t {
  kPull = 1,    ///< consumer -> producer: which register slot; no payload
  kBegin = 2,   ///< producer -> consumer: what the value is; a scalar is already whole
  kData = 3,    ///< bytes [offset, offset + size) of one section of the value
  kFailed = 4,  ///< there is no such value; payload is a status
};
/// Parts of a value's memory. Of a matrix they are sent in the order of this list; of a frame first its
/// schema, then as values the bytes of one column after the other.
enum class Section : uint8_t { kRowOffsets = 0, kColumnIndexes = 1, kValues = 2, kSchema = 3 };
constexpr size_t kSections = 4;

/// In memory order: request u64 | offset u64 | run u32 | register i32 | size u32 | kind u8 | section u8 |
/// slot u8 | last u8.
struct FrameHeader {
  uint64_t request = 0;  ///< Chosen by the consumer, unique on its stream.
  uint64_t offset = 0;   ///< kData: bytes from the start of the section.
  uint32_t run = 0;      ///< kPull
  int32_t register_id = 0;
  uint32_t size = 0;  ///< Bytes of payload that follow.
  FrameKind kind = FrameKind::kPull;
  Section section = Section::kValues;
  uint8_t slot = 0;
  bool last = false;  ///< No frame of this request follows.

  std::array<uint8_t, kHeaderBytes> Encode() const;
  /// kDataLoss for an unknown kind or section.
  static Result<FrameHeader> Decode(const uint8_t* bytes);
};

/// One frame to be sent. The payload is either `owned` or memory that `keep_alive` holds.
struct OutgoingFrame {
  FrameHeader header;
  std::string owned;
  const void* payload = nullptr;
  std::shared_ptr<const void> keep_alive;
};

/// Cuts a value into frames, on demand.
class OutgoingValue {
 public:
  /// Frames of at most `piece_bytes` of memory each.
  OutgoingValue(uint64_t request, Result<Value> value, int64_t piece_bytes = kChunkBytes);
  /// That of the value; kResourceExhausted where there is no memory for the bytes of a compressed matrix. The
  /// frames tell it, too.
  const Status& status() const { return failure_; }
  /// The next frame; nullopt after the last one.
  std::optional<OutgoingFrame> Next();

 private:
  OutgoingFrame Begin();
  std::string Describe() const;

  struct Span {
    Section section;
    const void* data;
    int64_t bytes;
    int64_t begin = 0;  // In its section.
  };
  void AddSpan(Span span);
  void AddMatrix(const Matrix& matrix);
  void AddFrame(const heddle::Frame& frame);

  uint64_t request_;
  int64_t piece_bytes_;
  Status failure_;
  std::shared_ptr<const Value> value_;
  std::string schema_;                  // Of a frame.
  std::shared_ptr<const Buffer> flat_;  // Of a compressed matrix.
  std::vector<Span> spans_;
  size_t span_ = 0;
  int64_t offset_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

/// Puts the frames of one value together.
class IncomingValue {
 public:
  /// Where the payload of a kData frame goes: header.size bytes. kDataLoss when it lies outside the value, or
  /// not right behind what came before it in its section, as a frame that arrives twice;
  /// kResourceExhausted when the columns of a frame do not fit.
  Result<uint8_t*> Place(const FrameHeader& header);
  /// The payload of a kBegin or kFailed frame. Allocates a matrix. Returns what kFailed says.
  Status Accept(const FrameHeader& header, std::string_view payload);
  /// After the frame marked last. kDataLoss if bytes are missing or a matrix's index structure is not sound.
  Result<Value> Finish();

 private:
  enum class Form : uint8_t { kNone, kScalar, kText, kMatrix, kGroups, kFrame };

  int64_t SectionBytes(Section section) const;
  Status MakeColumns();
  Status BeginMatrix(std::string_view payload);
  Status BeginGroups(std::string_view payload);
  Result<Value> FinishMatrix();

  Form form_ = Form::kNone;
  Scalar scalar_;
  std::string text_;  // a long string
  Matrix matrix_;
  std::shared_ptr<Buffer> groups_;  // A compressed matrix, flat (core/values/column_groups_bytes.h).
  IncomingFrame frame_;
  int64_t stored_ = 0;
  std::array<uint64_t, kSections> received_ = {};  // Bytes of each section, from its first on.
};

/// All frames of a value in one text, for values of a few kilobytes; and back. kDataLoss when malformed.
std::string EncodeValue(const Value& value);
Result<Value> DecodeValue(std::string_view frames);

/// A status as bytes, and back: code, message, place, notes.
std::string EncodeStatus(const Status& status);
/// kDataLoss when malformed.
Status DecodeStatus(std::string_view bytes, Status* decoded);

}  // namespace heddle::engine
