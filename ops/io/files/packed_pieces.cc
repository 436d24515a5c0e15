// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/packed_pieces.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBytesKept = int64_t{32} << 20;

// A piece that is or will be undone. Who asks for it while another thread is at it waits for that one.
struct Undone {
  explicit Undone(size_t number) : piece(number) {}
  const size_t piece;
  std::mutex mutex;
  bool ready = false;
  CountedBytes bytes;
};

class PackedFile : public InputFile {
 public:
  PackedFile(std::unique_ptr<InputFile> packed, std::shared_ptr<const PackedPieces> pieces,
             const std::string& path)
      : packed_(std::move(packed)), pieces_(std::move(pieces)), path_(path) {
    const std::vector<int64_t>& begins = pieces_->begins();
    int64_t longest = 1;
    for (size_t i = 0; i + 1 < begins.size(); ++i) longest = std::max(longest, begins[i + 1] - begins[i]);
    most_kept_ = std::max<size_t>(static_cast<size_t>(kBytesKept / longest),
                                  2 * static_cast<size_t>(ParallelThreads()));
  }

  int64_t size() const override { return pieces_->begins().back(); }

  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const override {
    HEDDLE_RETURN_IF_ERROR(buffer->Renew(count, path_));
    const std::vector<int64_t>& begins = pieces_->begins();
    auto piece =
        static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1);
    for (int64_t done = 0; done < count; ++piece) {
      HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Undone> undone, Find(piece));
      const int64_t from = begin + done - begins[piece];
      const int64_t most = std::min(count - done, begins[piece + 1] - begins[piece] - from);
      std::memcpy(buffer->data() + done, undone->bytes.view().data() + from, static_cast<size_t>(most));
      done += most;
    }
    return buffer->view();
  }

 private:
  Result<std::shared_ptr<const Undone>> Find(size_t piece) const {
    const std::shared_ptr<Undone> undone = Entry(piece);
    const std::lock_guard lock(undone->mutex);
    if (undone->ready) return std::shared_ptr<const Undone>(undone);
    const std::vector<int64_t>& begins = pieces_->begins();
    HEDDLE_RETURN_IF_ERROR(undone->bytes.Renew(begins[piece + 1] - begins[piece], path_));
    HEDDLE_RETURN_IF_ERROR(pieces_->Unpack(*packed_, path_, piece, undone->bytes.data()));
    undone->ready = true;
    return std::shared_ptr<const Undone>(undone);
  }

  std::shared_ptr<Undone> Entry(size_t piece) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const std::shared_ptr<Undone>& kept) {
      return kept->piece == piece;
    });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
    } else {
      kept_.push_front(std::make_shared<Undone>(piece));
      if (kept_.size() > most_kept_) kept_.pop_back();
    }
    return kept_.front();
  }

  const std::unique_ptr<InputFile> packed_;
  const std::shared_ptr<const PackedPieces> pieces_;
  const std::string path_;
  size_t most_kept_ = 1;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<Undone>> kept_;  // Those asked for last come first.
};

}  // namespace

std::unique_ptr<InputFile> MakePackedFile(std::unique_ptr<InputFile> packed,
                                          std::shared_ptr<const PackedPieces> pieces,
                                          const std::string& path) {
  return std::make_unique<PackedFile>(std::move(packed), std::move(pieces), path);
}

}  // namespace heddle::ops
