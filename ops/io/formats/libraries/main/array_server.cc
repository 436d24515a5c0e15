// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/main/array_server.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/memory/counted_heap.h"
#include "core/memory/heap_of_process.h"
#include "core/values/sizes.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/formats/libraries/array_messages.h"
#include "ops/io/formats/libraries/array_process.h"
#include "ops/io/formats/libraries/main/mat_elements.h"

namespace heddle::ops {
namespace {

using OpenedArray = Result<std::unique_ptr<StoredArray>>;

// Where a library decodes more than it answers, it has a second more of the processor for so many bytes.
constexpr int64_t kBytesOfSecond = int64_t{16} << 20;

// Bounds the processor time of this process for the next answer.
void LimitTime(int64_t bytes_of_read) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const rlim_t most = static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      kArrayProcessSeconds + static_cast<rlim_t>(bytes_of_read / kBytesOfSecond);
  const rlimit limit{most, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &limit);
}

// work(), whose allocations fail beyond the bound of the process. A library may answer a failed allocation
// with any error, or with none that says why: the error here has the numbers.
template <typename Work>
Status WithinBound(const std::string& path, const Work& work) {
  Status status;
  try {
    const HeapModeScope refuses(HeapMode::kRefuses);
    status = work();
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory: cannot read '{}'", path);
  } catch (const std::length_error&) {
    return DataLoss("cannot read '{}': it is damaged", path);
  }
  if (status.ok() || RefusedToProcess() == 0) return status;
  return ResourceExhausted("out of memory: cannot read '{}': {} bytes are asked for at once, {} are left",
                           path, RefusedToProcess(), std::max<int64_t>(0, RoomInBoundOfProcess()))
      .WithNote(
          "it is damaged, or its pieces are very large: write it in smaller ones, or allow more memory with "
          "--memory BYTES");
}

// Asks Heddle for bytes of the file.
Status AskForBytes(int socket, const std::string& path, int64_t begin, int64_t count, char* out) {
  for (int64_t done = 0; done < count;) {
    const BytesWanted wanted = {.begin = begin + done, .count = std::min(count - done, kMostBytesWanted)};
    Status status;
    if (!SendValue(socket, MessageKind::kWantsBytes) || !SendValue(socket, wanted) ||
        !ReceiveStatus(socket, &status))
      return DataLoss("cannot read '{}': Heddle has ended", path);
    HEDDLE_RETURN_IF_ERROR(status);
    if (!ReceiveAll(socket, out + done, static_cast<size_t>(wanted.count)))
      return DataLoss("cannot read '{}': Heddle has ended", path);
    done += wanted.count;
  }
  return OkStatus();
}

// libmatio takes names of files alone, and what Heddle has opened may be packed, or another version than has
// that name by now: the bytes are copied into a file that has no name but that of its descriptor. They are
// memory of this process as its heap is.
Result<std::string> CopyToMemory(const ModuleInput& input) {
  constexpr int64_t kPieceBytes = 1 << 20;
  const int descriptor = memfd_create("heddle-mat", MFD_CLOEXEC);
  if (descriptor < 0)
    return ResourceExhausted("cannot read '{}': no file in memory: {}", input.path, std::strerror(errno));
  MoveBoundOfProcess(-input.size);
  std::string piece;
  for (int64_t at = 0; at < input.size; at += kPieceBytes) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, input.size - at)));
    HEDDLE_RETURN_IF_ERROR(input.read(at, static_cast<int64_t>(piece.size()), piece.data()));
    for (std::string_view rest = piece; !rest.empty();) {
      const ssize_t written = write(descriptor, rest.data(), rest.size());
      if (written <= 0)
        return ResourceExhausted("cannot read '{}': no file in memory: {}", input.path, std::strerror(errno));
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }
  return fmt::format("/proc/self/fd/{}", descriptor);
}

OpenedArray OpenArray(ArrayLibrary library, const ModuleInput& input, const ArrayChoice& choice) {
  const auto unusable = [&](const Status& why) {
    return WithoutLibrary(library, "read", fmt::format("'{}'", input.path), why);
  };
  if (library == ArrayLibrary::kHdf5) {
    const Result<const Hdf5Module*> module = OpenHdf5Module();
    return module.ok() ? (*module)->open(input, choice) : unusable(module.status());
  }
  const Result<const MatModule*> module = OpenMatModule();
  if (!module.ok()) return unusable(module.status());
  if (library == ArrayLibrary::kMat5) HEDDLE_RETURN_IF_ERROR(CheckMatElements(input));
  HEDDLE_ASSIGN_OR_RETURN(const std::string place, CopyToMemory(input));
  return (*module)->open(place, input.path, choice);
}

// Answers a request for `count` values, which `read` puts into the memory that it is given.
template <typename T, typename Read>
bool Answer(int socket, const std::string& path, int64_t count, const Read& read) {
  std::vector<T> values;
  const Status status = WithinBound(path, [&] {
    values.resize(static_cast<size_t>(count));
    return read(values.data());
  });
  return SendValue(socket, MessageKind::kAnswer) && SendStatus(socket, status) &&
         (!status.ok() ||
          SendAll(socket, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}));
}

}  // namespace

bool ServeArray(int socket, int descriptor_of_file) {
  Opening opening;
  std::string path, dataset;
  if (!ReceiveValue(socket, &opening) || !ReceiveText(socket, &path) || !ReceiveText(socket, &dataset))
    return false;
  const ModuleInput input = {
      .path = path, .size = opening.file_bytes, .read = [&](int64_t begin, int64_t count, char* out) {
        return opening.has_descriptor
                   ? ReadBytesAt(descriptor_of_file, path, opening.file_bytes, begin, count, out)
                   : AskForBytes(socket, path, begin, count, out);
      }};
  BoundHeapOfProcess(opening.heap_bytes);
  LimitTime(opening.heap_bytes);
  std::unique_ptr<StoredArray> array;
  const Status opened = WithinBound(path, [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(array, OpenArray(opening.library, input, {dataset, opening.transposed}));
    return OkStatus();
  });
  if (!SendValue(socket, MessageKind::kAnswer) || !SendStatus(socket, opened) || !opened.ok()) return true;
  const std::vector<int64_t>& sizes = array->sizes();
  const Head head = {.indexes = static_cast<int64_t>(sizes.size()),
                     .rows_of_chunk = array->rows_of_chunk(),
                     .bytes_of_read = array->bytes_of_read(),
                     .stored = array->stored()};
  if (!SendValue(socket, head) ||
      !SendAll(socket, {reinterpret_cast<const char*>(sizes.data()), sizes.size() * sizeof(int64_t)}) ||
      !SendText(socket, array->column_major_writer()))
    return true;
  for (Request request; ReceiveValue(socket, &request);) {
    MoveBoundOfProcess(request.more_heap_bytes);
    LimitTime(head.bytes_of_read);
    const auto [begin, end] = std::pair(request.begin, request.end);
    const bool goes_on =
        request.of_stored
            ? Answer<StoredCell>(socket, path, end - begin,
                                 [&](StoredCell* out) { return array->ReadStored(begin, end, out); })
            : Answer<double>(socket, path, SaturatingProduct(end - begin, WidthOf(sizes)),
                             [&](double* out) { return array->Read(begin, end, out); });
    if (!goes_on) return true;
  }
  return true;
}

}  // namespace heddle::ops
