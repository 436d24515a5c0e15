// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_constants.h"

#include <cpuid.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>

#include "core/hash.h"
#include "core/version.h"
#include "ops/io/files/own_folders.h"

namespace heddle::engine {
namespace {

using ops::MachineConstants;

constexpr std::string_view kFirstLine = "heddle machine constants 3\n";
constexpr size_t kMostBytes = 4096;

// Code that is slow by the way it was built must not speak for the other kinds.
constexpr const char* kBuild =
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    "sanitized";
#elif defined(NDEBUG)
    "release";
#else
    "debug";
#endif

// The brand string of CPUID: reading it takes no file.
std::string ProcessorModel() {
  std::array<unsigned, 12> words{};
  if (__get_cpuid_max(0x80000000u, nullptr) < 0x80000004u) return "unknown";
  for (unsigned i = 0; i < 3; ++i)
    __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  char text[sizeof words + 1] = {};
  std::memcpy(text, words.data(), sizeof words);
  return text;
}

// Fields are cut off the front of `line`.
bool TakeWord(std::string_view* line, std::string_view word) {
  if (!line->starts_with(word)) return false;
  line->remove_prefix(word.size());
  return true;
}

bool TakeNumber(std::string_view* line, double* number) {
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), *number);
  line->remove_prefix(static_cast<size_t>(end - line->data()));
  return error == std::errc();
}

// nullopt unless it is an ordinary small file of this user.
std::optional<std::string> ReadOwnFile(int folder, const std::string& name) {
  const int file = openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::array<char, kMostBytes> block;
  struct stat status {};
  ssize_t got = -1;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid())
    got = read(file, block.data(), block.size());
  close(file);
  if (got < 0) return std::nullopt;
  return std::string(block.data(), static_cast<size_t>(got));
}

std::string NameOf(const std::string& key) { return fmt::format("{:016x}", FoldHash(1, key)); }

}  // namespace

std::string EncodeConstants(const MachineConstants& constants) {
  return fmt::format("{} read {} write {} compute {} operator {} links {}",
                     constants.measured ? "measured" : "built-in", constants.read_bytes_per_ns,
                     constants.write_bytes_per_ns, constants.work_per_ns, constants.operator_ns,
                     EncodeLinks(constants.links));
}

std::optional<MachineConstants> DecodeConstants(std::string_view line) {
  MachineConstants constants;
  constants.measured = TakeWord(&line, "measured");
  if (!constants.measured && !TakeWord(&line, "built-in")) return std::nullopt;
  const std::pair<std::string_view, double*> fields[] = {{" read ", &constants.read_bytes_per_ns},
                                                         {" write ", &constants.write_bytes_per_ns},
                                                         {" compute ", &constants.work_per_ns},
                                                         {" operator ", &constants.operator_ns}};
  for (const auto& [name, number] : fields)
    if (!TakeWord(&line, name) || !TakeNumber(&line, number)) return std::nullopt;
  if (!TakeWord(&line, " links ")) return std::nullopt;
  const std::optional<ops::LinkRates> links = DecodeLinks(line);
  if (!links) return std::nullopt;
  constants.links = *links;
  if (!ArePlausible(constants)) return std::nullopt;
  return constants;
}

std::string EncodeLinks(const ops::LinkRates& links) {
  return fmt::format("{} send {} message {}", links.measured ? "measured" : "built-in", links.bytes_per_ns,
                     links.message_ns);
}

std::optional<ops::LinkRates> DecodeLinks(std::string_view line) {
  ops::LinkRates links;
  links.measured = TakeWord(&line, "measured");
  if (!links.measured && !TakeWord(&line, "built-in")) return std::nullopt;
  if (!TakeWord(&line, " send ") || !TakeNumber(&line, &links.bytes_per_ns) ||
      !TakeWord(&line, " message ") || !TakeNumber(&line, &links.message_ns) || !line.empty() ||
      !ArePlausible(links))
    return std::nullopt;
  return links;
}

std::string MachineKey(int threads) {
  return fmt::format("{} {}, {} threads, {}", kVersion, kBuild, threads, ProcessorModel());
}

std::string ConstantsCache::DefaultFolder() {
  const std::string cache = ops::UserCacheFolder();
  return cache.empty() ? cache : cache + "/machine";
}

std::string ConstantsCache::PathOf(const std::string& key) const { return folder_ + "/" + NameOf(key); }

bool ConstantsCache::IsUsable() const {
  if (folder_.empty()) return false;
  const Result<Descriptor> folder = ops::OpenFolderForUser(folder_, {.is_closed = true});
  return folder.ok() && faccessat(folder->get(), ".", W_OK | X_OK, 0) == 0;
}

std::optional<MachineConstants> ConstantsCache::Find(const std::string& key) const {
  const std::optional<std::string> line = FindLine(key);
  return line ? DecodeConstants(*line) : std::nullopt;
}

std::optional<ops::LinkRates> ConstantsCache::FindLinks(const std::string& key) const {
  const std::optional<std::string> line = FindLine(key);
  return line ? DecodeLinks(*line) : std::nullopt;
}

void ConstantsCache::Store(const std::string& key, const MachineConstants& constants) const {
  StoreLine(key, EncodeConstants(constants));
}

void ConstantsCache::StoreLinks(const std::string& key, const ops::LinkRates& links) const {
  StoreLine(key, EncodeLinks(links));
}

std::optional<std::string> ConstantsCache::FindLine(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const Result<Descriptor> folder = ops::OpenFolderForUser(folder_, {.is_made = false, .is_closed = true});
  if (!folder.ok()) return std::nullopt;
  const std::optional<std::string> text = ReadOwnFile(folder->get(), NameOf(key));
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  if (!TakeWord(&rest, kFirstLine) || !TakeWord(&rest, key + "\n")) return std::nullopt;
  if (!rest.ends_with('\n')) return std::nullopt;
  rest.remove_suffix(1);
  return std::string(rest);
}

void ConstantsCache::StoreLine(const std::string& key, const std::string& line) const {
  if (folder_.empty()) return;
  const Result<Descriptor> folder = ops::OpenFolderForUser(folder_, {.is_closed = true});
  if (!folder.ok()) return;
  static std::atomic<int> count = 0;
  const std::string next = fmt::format("{}-{}.new", getpid(), count++);
  const std::string text = fmt::format("{}{}\n{}\n", kFirstLine, key, line);
  const int in = folder->get();
  const int file = openat(in, next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) != 0 || !written || renameat(in, next.c_str(), in, NameOf(key).c_str()) != 0)
    unlinkat(in, next.c_str(), 0);
}

}  // namespace heddle::engine
