// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoints/checkpoint_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/programs/text_format.h"
#include "core/values/sizes.h"
#include "engine/wire/value_wire.h"
#include "ops/cells/column_pieces.h"
#include "ops/frame/row_pieces.h"
#include "ops/io/checksums/crc32c.h"
#include "ops/panels/entry_counts.h"
#include "ops/panels/kept_parts.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kMagic = "heddle checkpoint 1\n";
constexpr int64_t kBuffered = int64_t{1} << 20;
constexpr int64_t kMostPieceBytes = int64_t{32} << 20, kLeastPieceBytes = int64_t{1} << 18;
constexpr int64_t kMostTextBytes = int64_t{1} << 30;

// A value, or some rows of one, in wire form.
struct Piece {
  int64_t offset = 0, bytes = 0;
  uint32_t checksum = 0;
};

// What an object has of a variable, or of an element of a list.
struct Leaf {
  std::vector<Piece> pieces;
  std::optional<Piece> nothing;  // A part of it without rows or columns.
};

// What ends an object: where its text is. Little-endian, as all machines are that this runs on.
struct Footer {
  int64_t offset = 0, bytes = 0;
  uint32_t checksum = 0;
  std::array<char, 4> magic = {'h', 'c', 'k', '1'};
};
static_assert(sizeof(Footer) == 24);

template <typename AnyVariable, typename Visit>
Status ForEachLeaf(AnyVariable& variable, const Visit& visit) {
  if (variable.list == nullptr) return visit(variable);
  for (auto& element : variable.list->elements) HEDDLE_RETURN_IF_ERROR(ForEachLeaf(element, visit));
  return OkStatus();
}

// In an order that the text of the state tells.
template <typename AnyState, typename Visit>
Status ForEachLeafOf(AnyState& state, const Visit& visit) {
  for (auto& frame : state.frames)
    for (auto& [name, variable] : frame.variables()) HEDDLE_RETURN_IF_ERROR(ForEachLeaf(variable, visit));
  return OkStatus();
}

bool IsByColumns(const Variable& variable) {
  return variable.distribution.IsSplit() && variable.distribution.split.axis == Axis::kColumns;
}

// No rows of the value, or no columns where it is split by them, in memory of their own.
Result<Value> NothingOf(const Variable& variable) {
  Result<Value> nothing = variable.value.IsPanels() ? variable.value.panels()->Rows(0, 0)
                          : IsByColumns(variable)   ? ops::ColumnsOfValue(variable.value, 0, 0)
                                                    : ops::SliceRows(variable.value, 0, 0);
  if (!nothing.ok()) return nothing;
  return ops::WithMemoryOfItsOwn(*std::move(nothing));
}

// Checksums are right, so that this is a fault of ours.
Status ValuesDiffer() { return Internal("a checkpoint has other values than its text says"); }

std::string_view BytesOf(const auto& plain) { return {reinterpret_cast<const char*>(&plain), sizeof(plain)}; }

class ObjectWriter {
 public:
  ObjectWriter(std::unique_ptr<CheckpointStore::Writer> out, int64_t piece_bytes,
               const std::atomic<bool>* given_up)
      : out_(std::move(out)), piece_bytes_(piece_bytes), given_up_(given_up) {}

  Status Append(std::string_view bytes) {
    if (given_up_ != nullptr && *given_up_) return Cancelled("the checkpoint is not needed any more");
    written_ += static_cast<int64_t>(bytes.size());
    return out_->Append(bytes);
  }
  Result<Piece> AppendValue(const Value& value) {
    Piece piece{.offset = written_};
    OutgoingValue outgoing(0, value);
    HEDDLE_RETURN_IF_ERROR(outgoing.status());
    while (const std::optional<OutgoingFrame> frame = outgoing.Next()) {
      const auto header = frame->header.Encode();
      const std::string_view payload =
          frame->payload == nullptr
              ? std::string_view(frame->owned)
              : std::string_view(static_cast<const char*>(frame->payload), frame->header.size);
      for (const std::string_view part :
           {std::string_view(reinterpret_cast<const char*>(header.data()), header.size()), payload}) {
        piece.checksum = ops::Crc32c(part, piece.checksum);
        HEDDLE_RETURN_IF_ERROR(Append(part));
      }
    }
    piece.bytes = written_ - piece.offset;
    return piece;
  }
  // Of texts, and of CSR rows that nobody has counted, only the rows tell how many bytes they have: there are
  // few at first, then as many as the last ones let be.
  Status AppendPanels(const RowPanels& panels, ValueInfo info, std::vector<Piece>* pieces) {
    constexpr int64_t kFirstRows = 64, kMostGrowth = 2;
    const int64_t rows = info.shape.rows = panels.shape().rows;
    const int64_t bytes = ops::BytesOfRows(panels, info);
    const int64_t mean_bytes =
        bytes == kUnknown ? 1 : std::max<int64_t>(1, bytes / std::max<int64_t>(1, rows));
    int64_t height = bytes == kUnknown ? kFirstRows : std::max<int64_t>(1, piece_bytes_ / mean_bytes);
    for (int64_t row = 0;;) {
      const int64_t end = std::min(rows, row + height);
      HEDDLE_ASSIGN_OR_RETURN(const Value part, panels.Rows(row, end));
      HEDDLE_ASSIGN_OR_RETURN(pieces->emplace_back(), AppendValue(part));
      if (end == rows) return OkStatus();
      const int64_t row_bytes = std::max(mean_bytes, part.bytes() / (end - row));
      height = std::clamp<int64_t>(piece_bytes_ / row_bytes, 1, kMostGrowth * height);
      row = end;
    }
  }
  Result<Leaf> AppendLeaf(const Variable& variable) {
    Leaf leaf;
    if (variable.value.IsPanels()) {
      HEDDLE_RETURN_IF_ERROR(AppendPanels(*variable.value.panels(), variable.info, &leaf.pieces));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(leaf.pieces.emplace_back(), AppendValue(variable.value));
    }
    if (!variable.distribution.IsSplit()) return leaf;
    HEDDLE_ASSIGN_OR_RETURN(const Value nothing, NothingOf(variable));
    HEDDLE_ASSIGN_OR_RETURN(leaf.nothing, AppendValue(nothing));
    return leaf;
  }
  Result<int64_t> Finish(const std::string& text) {
    const Footer footer{
        .offset = written_, .bytes = static_cast<int64_t>(text.size()), .checksum = ops::Crc32c(text)};
    HEDDLE_RETURN_IF_ERROR(Append(text));
    HEDDLE_RETURN_IF_ERROR(Append(BytesOf(footer)));
    HEDDLE_RETURN_IF_ERROR(out_->Finish());
    return written_;
  }

 private:
  std::unique_ptr<CheckpointStore::Writer> out_;
  const int64_t piece_bytes_;
  const std::atomic<bool>* const given_up_;
  int64_t written_ = 0;
};

// The object of one rank, read from front to back.
class ObjectReader {
 public:
  ObjectReader(CheckpointStore& store, std::string name) : store_(store), name_(std::move(name)) {}

  // Its text, and where its values are.
  Status Open() {
    HEDDLE_ASSIGN_OR_RETURN(size_, store_.SizeOf(name_));
    Footer footer;
    if (size_ < static_cast<int64_t>(kMagic.size() + sizeof footer)) return IsNone();
    HEDDLE_RETURN_IF_ERROR(store_.Read(name_, size_ - static_cast<int64_t>(sizeof footer),
                                       {reinterpret_cast<char*>(&footer), sizeof footer}));
    const int64_t end = size_ - static_cast<int64_t>(sizeof footer);
    if (footer.magic != Footer().magic || footer.offset < static_cast<int64_t>(kMagic.size()) ||
        footer.offset > end || footer.bytes != end - footer.offset || footer.bytes > kMostTextBytes)
      return IsNone();
    std::string text(static_cast<size_t>(footer.bytes), '\0');
    HEDDLE_RETURN_IF_ERROR(store_.Read(name_, footer.offset, text));
    if (ops::Crc32c(text) != footer.checksum) return IsDamaged();
    values_end_ = footer.offset;
    const size_t index = text.rfind("\nvalues\n");
    if (index == std::string::npos) return IsNone();
    state_text_ = text.substr(0, index + 1);
    return ReadIndex(std::string_view(text).substr(index));
  }
  Result<ControlState> State() const { return ControlState::ParseText(state_text_); }
  const std::vector<Leaf>& leaves() const { return leaves_; }

  Result<Value> Read(const Piece& piece) {
    at_ = piece.offset;
    end_ = piece.offset + piece.bytes;
    checksum_ = 0;
    IncomingValue value;
    for (bool last = false; !last;) {
      std::array<uint8_t, kHeaderBytes> bytes{};
      HEDDLE_RETURN_IF_ERROR(Take({reinterpret_cast<char*>(bytes.data()), bytes.size()}));
      HEDDLE_ASSIGN_OR_RETURN(const FrameHeader header, FrameHeader::Decode(bytes.data()));
      if (header.kind == FrameKind::kData) {
        HEDDLE_ASSIGN_OR_RETURN(uint8_t* const place, value.Place(header));
        HEDDLE_RETURN_IF_ERROR(Take({reinterpret_cast<char*>(place), header.size}));
      } else {
        if (header.size > end_ - at_) return IsDamaged();
        std::string payload(header.size, '\0');
        HEDDLE_RETURN_IF_ERROR(Take(payload));
        HEDDLE_RETURN_IF_ERROR(value.Accept(header, payload));
      }
      last = header.last;
    }
    if (at_ != end_ || checksum_ != piece.checksum) return IsDamaged();
    return value.Finish();
  }

 private:
  Status IsNone() const { return DataLoss("'{}' is no checkpoint, or is cut off", name_); }
  Status IsDamaged() const { return DataLoss("the checkpoint '{}' is damaged", name_); }

  Status ReadIndex(std::string_view text) {
    TextReader reader(text, "checkpoint");
    reader.Expect("values");
    bool are_inside = true;
    const auto read_piece = [&] {
      Piece piece{.offset = reader.Integer(), .bytes = reader.Integer()};
      piece.checksum = static_cast<uint32_t>(reader.Hexadecimal());
      are_inside &= piece.offset >= 0 && piece.offset <= values_end_ && piece.bytes >= 0 &&
                    piece.bytes <= values_end_ - piece.offset;
      return piece;
    };
    while (reader.AcceptWord("leaf")) {
      Leaf& leaf = leaves_.emplace_back();
      while (reader.AcceptWord("at")) leaf.pieces.push_back(read_piece());
      if (reader.AcceptWord("nothing")) leaf.nothing = read_piece();
    }
    return reader.ok() && reader.AtEnd() && are_inside ? OkStatus() : ValuesDiffer();
  }

  Status Take(std::span<char> to) {
    if (static_cast<int64_t>(to.size()) > end_ - at_) return IsDamaged();
    const int64_t at = at_;
    at_ += static_cast<int64_t>(to.size());
    if (static_cast<int64_t>(to.size()) >= kBuffered / 4) {
      HEDDLE_RETURN_IF_ERROR(store_.Read(name_, at, to));
    } else {
      HEDDLE_RETURN_IF_ERROR(Fill(at, static_cast<int64_t>(to.size())));
      std::memcpy(to.data(), buffer_.data() + (at - buffer_begin_), to.size());
    }
    checksum_ = ops::Crc32c({to.data(), to.size()}, checksum_);
    return OkStatus();
  }
  // Small values lie side by side.
  Status Fill(int64_t at, int64_t bytes) {
    if (at >= buffer_begin_ && at + bytes <= buffer_begin_ + static_cast<int64_t>(buffer_.size()))
      return OkStatus();
    buffer_.resize(static_cast<size_t>(std::min(kBuffered, size_ - at)));
    buffer_begin_ = at;
    return store_.Read(name_, at, buffer_);
  }

  CheckpointStore& store_;
  const std::string name_;
  int64_t size_ = 0, values_end_ = 0;
  std::string state_text_;
  std::vector<Leaf> leaves_;
  int64_t at_ = 0, end_ = 0;
  uint32_t checksum_ = 0;
  std::string buffer_;
  int64_t buffer_begin_ = 0;
};

// The ranks of before are shared out among those of now, neighbours together.
struct Ranks {
  int before = 1, now = 1;
  int FirstOf(int rank) const { return static_cast<int>(int64_t{rank} * before / now); }
  // Who has what rank `old` had.
  int NewOwnerOf(int old) const {
    int rank = 0;
    while (FirstOf(rank + 1) <= old) ++rank;
    return rank;
  }
};

class CheckpointReader {
 public:
  CheckpointReader(const std::string& checkpoint, const Ranks& ranks, int rank, CheckpointStore& store,
                   ops::PanelStore& panels)
      : checkpoint_(checkpoint), ranks_(ranks), rank_(rank), store_(store), panels_(panels) {}

  Result<ControlState> Read() {
    HEDDLE_ASSIGN_OR_RETURN(ObjectReader* const first, ObjectOf(0));
    HEDDLE_ASSIGN_OR_RETURN(ControlState state, first->State());
    size_t leaf = 0;
    HEDDLE_RETURN_IF_ERROR(
        ForEachLeafOf(state, [&](Variable& variable) { return ReadLeaf(leaf++, &variable); }));
    if (leaf != first->leaves().size()) return ValuesDiffer();
    return state;
  }

 private:
  Result<ObjectReader*> ObjectOf(int old_rank) {
    const auto [found, is_new] = objects_.try_emplace(old_rank, nullptr);
    if (is_new) {
      found->second = std::make_unique<ObjectReader>(store_, CheckpointObject(checkpoint_, old_rank));
      HEDDLE_RETURN_IF_ERROR(found->second->Open());
    }
    return found->second.get();
  }

  Status ReadLeaf(size_t leaf, Variable* variable) {
    using Kind = Distribution::Kind;
    if (variable->source != nullptr) return OkStatus();
    Distribution& distribution = variable->distribution;
    switch (distribution.kind) {
      case Kind::kEach: return TakeParts(leaf, 0, 1, variable);
      case Kind::kOne: {
        const int old_rank = std::clamp(distribution.rank, 0, ranks_.before - 1);
        distribution.rank = ranks_.NewOwnerOf(old_rank);
        if (distribution.rank != rank_) return OkStatus();
        return TakeParts(leaf, old_rank, old_rank + 1, variable);
      }
      case Kind::kSplit: {
        std::vector<int64_t>& cuts = distribution.split.cuts;
        if (cuts.size() != static_cast<size_t>(ranks_.before) + 1) return ValuesDiffer();
        std::vector<int64_t> merged;
        for (int rank = 0; rank <= ranks_.now; ++rank)
          merged.push_back(cuts[static_cast<size_t>(ranks_.FirstOf(rank))]);
        cuts = std::move(merged);
        break;
      }
      case Kind::kPartial: return ValuesDiffer();  // Between two steps no value is.
    }
    return TakeParts(leaf, ranks_.FirstOf(rank_), ranks_.FirstOf(rank_ + 1), variable);
  }

  // What ranks [begin, end) of before had; of none, a part without rows or columns.
  Status TakeParts(size_t leaf, int begin, int end, Variable* variable) {
    const bool is_empty = begin == end;
    std::vector<std::pair<ObjectReader*, Piece>> pieces;
    int64_t bytes = 0;
    for (int old_rank = begin; old_rank < std::max(end, begin + 1); ++old_rank) {
      HEDDLE_ASSIGN_OR_RETURN(ObjectReader* const object, ObjectOf(std::min(old_rank, ranks_.before - 1)));
      if (leaf >= object->leaves().size()) return ValuesDiffer();
      const Leaf& found = object->leaves()[leaf];
      if (is_empty) {
        if (!found.nothing) return ValuesDiffer();
        HEDDLE_ASSIGN_OR_RETURN(variable->value, object->Read(*found.nothing));
        return OkStatus();
      }
      for (const Piece& piece : found.pieces) {
        pieces.emplace_back(object, piece);
        bytes += piece.bytes;
      }
    }
    if (pieces.empty()) return ValuesDiffer();
    if (variable->is_panels && !IsByColumns(*variable)) return TakePanels(pieces, variable);
    if (pieces.size() == 1) {
      HEDDLE_ASSIGN_OR_RETURN(variable->value, pieces[0].first->Read(pieces[0].second));
      return OkStatus();
    }
    if (bytes <= kMostPieceBytes || IsByColumns(*variable)) return Join(pieces, variable);
    HEDDLE_RETURN_IF_ERROR(TakePanels(pieces, variable));
    const std::shared_ptr<const RowPanels> panels = variable->value.panels();
    HEDDLE_ASSIGN_OR_RETURN(variable->value, panels->Rows(0, panels->shape().rows));
    return OkStatus();
  }
  static Status Join(const std::vector<std::pair<ObjectReader*, Piece>>& pieces, Variable* variable) {
    std::vector<Value> parts;
    std::vector<const Value*> pointers;
    for (const auto& [object, piece] : pieces) {
      HEDDLE_ASSIGN_OR_RETURN(Value part, object->Read(piece));
      parts.push_back(std::move(part));
    }
    for (const Value& part : parts) pointers.push_back(&part);
    if (IsByColumns(*variable)) {
      HEDDLE_ASSIGN_OR_RETURN(variable->value, ops::JoinColumns(pointers));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(variable->value, ops::JoinRows(pointers));
    }
    return OkStatus();
  }
  Status TakePanels(const std::vector<std::pair<ObjectReader*, Piece>>& pieces, Variable* variable) {
    Shape shape = variable->info.shape;
    const Split& split = variable->distribution.split;
    if (variable->distribution.IsSplit()) shape.rows = split.End(rank_) - split.Begin(rank_);
    const auto collector = panels_.Collect(shape, variable->info.IsFrame());
    for (const auto& [object, piece] : pieces) {
      HEDDLE_ASSIGN_OR_RETURN(Value rows, object->Read(piece));
      HEDDLE_RETURN_IF_ERROR(collector->Add(std::move(rows)));
    }
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> kept, collector->Finish());
    variable->value = Value(std::move(kept));
    return OkStatus();
  }

  const std::string& checkpoint_;
  const Ranks ranks_;
  const int rank_;
  CheckpointStore& store_;
  ops::PanelStore& panels_;
  std::map<int, std::unique_ptr<ObjectReader>> objects_;  // By rank of before.
};

}  // namespace

std::string CheckpointObject(const std::string& checkpoint, int rank) {
  return fmt::format("{}/rank-{}", checkpoint, rank);
}

int64_t CheckpointPieceBytes(int64_t memory_bytes) {
  constexpr int64_t kPartsOfMemory = 16;
  return std::clamp(memory_bytes / kPartsOfMemory, kLeastPieceBytes, kMostPieceBytes);
}

Result<int64_t> WriteCheckpoint(const ControlState& state, int rank, const std::string& checkpoint,
                                CheckpointStore& store, int64_t piece_bytes,
                                const std::atomic<bool>* given_up) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointStore::Writer> out,
                          store.Create(CheckpointObject(checkpoint, rank)));
  ObjectWriter writer(std::move(out), piece_bytes, given_up);
  HEDDLE_RETURN_IF_ERROR(writer.Append(kMagic));
  std::string text = state.ToText();
  text += "values\n";
  const auto tell = [&text](std::string_view what, const Piece& piece) {
    text += fmt::format(" {} {} {} {:#x}", what, piece.offset, piece.bytes, piece.checksum);
  };
  HEDDLE_RETURN_IF_ERROR(ForEachLeafOf(state, [&](const Variable& variable) -> Status {
    const bool is_elsewhere = !variable.IsHeldBy(rank) || (variable.distribution.IsEach() && rank != 0);
    Leaf leaf;
    if (variable.source == nullptr && !is_elsewhere) {
      HEDDLE_ASSIGN_OR_RETURN(leaf, writer.AppendLeaf(variable));
    }
    text += "leaf";
    for (const Piece& piece : leaf.pieces) tell("at", piece);
    if (leaf.nothing) tell("nothing", *leaf.nothing);
    text.push_back('\n');
    return OkStatus();
  }));
  return writer.Finish(text);
}

Result<ControlState> ReadCheckpoint(const std::string& checkpoint, int ranks_before, int rank, int ranks,
                                    CheckpointStore& store, ops::PanelStore& panels) {
  return CheckpointReader(checkpoint, {.before = ranks_before, .now = ranks}, rank, store, panels).Read();
}

}  // namespace heddle::engine
