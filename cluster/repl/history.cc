// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ops/io/files/files.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster {
namespace {

// A file with so many times the entries that are kept is written anew.
constexpr size_t kSlack = 2;

std::string Escaped(const std::string& entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n' || c == '\\') line.push_back('\\');
    line.push_back(c == '\n' ? 'n' : c);
  }
  return line + "\n";
}

std::string Unescaped(const std::string& line) {
  std::string entry;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool is_escape = line[i] == '\\' && i + 1 < line.size();
    if (is_escape) ++i;
    entry.push_back(is_escape && line[i] == 'n' ? '\n' : line[i]);
  }
  return entry;
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string History::DefaultPath() {
  if (const std::string state = Environment("XDG_STATE_HOME"); !state.empty())
    return state + "/heddle/history";
  const std::string home = Environment("HOME");
  return home.empty() ? "" : home + "/.heddle_history";
}

History::History(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::ifstream file(path_, std::ios::binary);
  for (std::string line; std::getline(file, line);) entries_.push_back(Unescaped(line));
  if (entries_.size() <= kMost) return;
  const bool is_long = entries_.size() > kSlack * kMost;
  entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kMost));
  if (!is_long) return;
  std::string text;
  for (const std::string& entry : entries_) text += Escaped(entry);
  (void)ops::MakeFiles("/")->Replace(path_, text);
}

void History::Add(const std::string& entry) {
  if (!entries_.empty() && entries_.back() == entry) return;
  entries_.push_back(entry);
  if (path_.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::exists(folder, ignored) && !ops::OpenFolderForUser(folder).ok())
    return;
  // One write at the end of the file: entries of other sessions stay whole.
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return;
  const std::string line = Escaped(entry);
  (void)!write(file, line.data(), line.size());
  close(file);
}

}  // namespace heddle::cluster
