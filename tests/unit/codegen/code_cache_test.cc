// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/codegen/code_module.h"
#include "compiler/codegen/codegen.h"
#include "ops/io/files/own_folders.h"
#include "ops/io/object_cache.h"
#include "tests/support/process.h"
#include "tests/unit/codegen/region_case.h"

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;
using ops::ObjectCache;
using ops::Region;

// A folder of its own for each test, with code in it that goes when the test does.
class CodeCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/heddle-code-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ::setenv("XDG_STATE_HOME", (folder_ + "/state").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("XDG_STATE_HOME");
    fs::remove_all(folder_);
  }

  std::unique_ptr<GeneratedCode> Source(int64_t disk_bytes = int64_t{1} << 20, size_t entries = 1024) const {
    CodegenOptions options;
    options.cache_folder = folder_ + "/code";
    options.disk_cache_bytes = disk_bytes;
    options.memory_cache_entries = entries;
    return GeneratedRegions(options);
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/code"))
      if (entry.path().filename() != ops::kOwnFolderMark) files.push_back(entry.path());
    return files;
  }
  // Copies of this program run with the modules that a test puts beside them, and the folder's own default
  // cache.
  void CopyProgram() const {
    fs::create_directory(folder_ + "/bin");
    fs::copy_file("/proc/self/exe", folder_ + "/bin/program");
  }
  void ExpectCopyPasses(const std::string& test) const {
    const std::string program = folder_ + "/bin/program", filter = "--gtest_filter=" + test;
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
      ::execl(program.c_str(), program.c_str(), "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
      ::_exit(9);
    }
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << test << ": " << status;
  }
  std::string folder_;
};

Region AddNumber(double x) {
  return *Region::Parse(
      fmt::format("region 1\n%0 = cells 0\n%1 = literal {}\n%2 = Add %0 %1\nstore %2\n", x));
}

// True if the code computes what literal loops do.
bool IsRight(const Region& region, const ops::RegionCode& code) {
  RegionCase test(region, {2, 37, 1}, 5);
  return FirstDifference(test.RunLiterally(), test.Run(code)).empty();
}

TEST_F(CodeCacheTest, TheSecondRequestIsAnsweredFromMemory) {
  const auto source = Source();
  const auto first = source->Compile(AddNumber(1)), second = source->Compile(AddNumber(1)),
             other = source->Compile(AddNumber(2));
  ASSERT_TRUE(first.ok() && second.ok() && other.ok()) << first.status().ToString();
  EXPECT_EQ(first->get(), second->get());
  EXPECT_NE(first->get(), other->get());
  EXPECT_EQ(source->statistics().compiled, 2);
  EXPECT_EQ(source->statistics().from_memory, 1);
  EXPECT_GT(source->statistics().compile_ms, 0);
}

TEST_F(CodeCacheTest, ManyThreadsCompileARegionOnce) {
  const auto source = Source();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        const auto code = source->Compile(AddNumber(k));
        if (code.ok() && IsRight(AddNumber(k), **code)) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
  EXPECT_EQ(source->statistics().compiled, 5);
  EXPECT_EQ(source->statistics().from_memory, 35);
}

TEST_F(CodeCacheTest, ForgottenCodeRunsAsLongAsSomebodyHoldsIt) {
  auto source = Source(0, 2);
  const auto held = source->Compile(AddNumber(0));
  ASSERT_TRUE(held.ok());
  for (int k = 1; k < 5; ++k) ASSERT_TRUE(source->Compile(AddNumber(k)).ok());
  EXPECT_EQ((*held).use_count(), 1);
  ASSERT_TRUE(source->Compile(AddNumber(4)).ok());
  EXPECT_EQ(source->statistics().from_memory, 1);
  ASSERT_TRUE(source->Compile(AddNumber(0)).ok());
  EXPECT_EQ(source->statistics().compiled, 6);
  source.reset();
  EXPECT_TRUE(IsRight(AddNumber(0), **held));
}

TEST_F(CodeCacheTest, TheNextRunFindsCodeOnDisk) {
  ASSERT_TRUE(Source()->Compile(AddNumber(1)).ok());
  ASSERT_EQ(Files().size(), 1u);
  const auto source = Source();
  const auto code = source->Compile(AddNumber(1));
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(source->statistics().from_disk, 1);
  EXPECT_EQ(source->statistics().compiled, 0);
  EXPECT_TRUE(IsRight(AddNumber(1), **code));
}

TEST_F(CodeCacheTest, DamagedAndForeignFilesAreReplaced) {
  ASSERT_TRUE(Source()->Compile(AddNumber(1)).ok());
  const fs::path file = Files().at(0);
  const auto size = static_cast<int64_t>(fs::file_size(file));
  std::string good(static_cast<size_t>(size), '\0');
  std::ifstream(file, std::ios::binary).read(good.data(), size);
  std::vector<std::string> damaged = {"", "not ours", good.substr(0, good.size() - 1), good + "x"};
  for (size_t at = 0; at < good.size(); at += good.size() / 23) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 0x20);
  }
  for (const std::string& text : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    const auto source = Source();
    const auto code = source->Compile(AddNumber(1));
    ASSERT_TRUE(code.ok());
    EXPECT_EQ(source->statistics().compiled, 1) << text.size();
    EXPECT_TRUE(IsRight(AddNumber(1), **code));
    std::string now(good.size(), '\0');
    std::ifstream(file, std::ios::binary).read(now.data(), size);
    EXPECT_EQ(now, good);
  }
}

// Whole, and of another key: as if two keys had one hash.
TEST_F(CodeCacheTest, AFileOfAnotherKeyIsNotUsed) {
  const ObjectCache cache(folder_, 1 << 20);
  cache.Store("one", "code of one");
  EXPECT_EQ(cache.Find("one"), "code of one");
  fs::copy_file(cache.PathOf("one"), cache.PathOf("two"));
  EXPECT_EQ(cache.Find("two"), std::nullopt);
  fs::remove(cache.PathOf("one"));
  fs::create_symlink(cache.PathOf("two"), cache.PathOf("one"));
  EXPECT_EQ(cache.Find("one"), std::nullopt);
}

// Whole and of the right key, but no object that the module can load.
TEST_F(CodeCacheTest, AnObjectThatCannotBeLoadedIsReplaced) {
  ASSERT_TRUE(Source()->Compile(AddNumber(1)).ok());
  std::ifstream file(Files().at(0), std::ios::binary);
  uint64_t magic = 0, key_size = 0, object_size = 0;  // As in object_cache.cc.
  for (uint64_t* field : {&magic, &key_size, &object_size})
    file.read(reinterpret_cast<char*>(field), sizeof *field);
  std::string key(key_size, '\0'), object(object_size, '\0');
  file.read(key.data(), static_cast<std::streamsize>(key_size))
      .read(object.data(), static_cast<std::streamsize>(object_size));
  ASSERT_TRUE(file.good());
  const ObjectCache cache(folder_ + "/code", 1 << 20);
  ASSERT_EQ(cache.Find(key), object);
  for (const std::string& bad :
       {std::string("not an object"), object.substr(0, object.size() / 2), std::string()}) {
    cache.Store(key, bad);
    ASSERT_EQ(cache.Find(key), bad);
    const auto source = Source();
    const auto code = source->Compile(AddNumber(1));
    ASSERT_TRUE(code.ok()) << code.status().ToString();
    EXPECT_EQ(source->statistics().compiled, 1);
    EXPECT_TRUE(IsRight(AddNumber(1), **code));
    EXPECT_EQ(cache.Find(key), object);
  }
}

// Each in every way in which somebody else could have put it there, or have changed it. The same bytes are
// made again.
TEST_F(CodeCacheTest, OnlyPlainFilesOfThisUserWithHisCodeAreUsed) {
  const ObjectCache cache(folder_ + "/code", 1 << 20);
  cache.Store("key", "object");
  const fs::path file = cache.PathOf("key");
  const auto mode_of = [](const fs::path& path) {
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  };
  EXPECT_EQ(mode_of(folder_ + "/code"), 0700u);
  EXPECT_EQ(mode_of(file), 0600u);
  EXPECT_EQ(mode_of(folder_ + "/state/heddle/code.key"), 0600u);
  const std::string good = testing_support::ReadText(file);
  const auto expect_made_again = [&](const std::string& why) {
    EXPECT_EQ(cache.Find("key"), std::nullopt) << why;
    cache.Store("key", "object");
    EXPECT_EQ(cache.Find("key"), "object") << why;
    EXPECT_EQ(testing_support::ReadText(file), good) << why;
  };

  for (const mode_t mode : {0620, 0602, 0640, 0604, 0666}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    expect_made_again(fmt::format("mode {:o}", mode));
  }
  fs::create_hard_link(file, folder_ + "/code/second");
  expect_made_again("two names");
  fs::remove(folder_ + "/code/second");
  fs::rename(file, folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", file);
  expect_made_again("a link");
  ASSERT_TRUE(fs::remove(file));
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  expect_made_again("a pipe without a writer");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 1234, 1234), 0);
    expect_made_again("another user's");
  }
  // Another object, with all that a forger knows: the sizes and the key, but not the secret.
  std::string forged = good;
  forged.replace(forged.find("object"), 6, "forged");
  for (const std::string& text : {forged, forged.substr(0, forged.size() - 32)}) {
    testing_support::WriteText(file, text);
    expect_made_again("forged");
  }

  // Others could enter the folder: it is closed, and files are looked at as before.
  ASSERT_EQ(::chmod((folder_ + "/code").c_str(), 0755), 0);
  EXPECT_EQ(cache.Find("key"), "object");
  EXPECT_EQ(mode_of(folder_ + "/code"), 0700u);
  // Where others could write, nothing is found and nothing is stored.
  ASSERT_EQ(::chmod((folder_ + "/code").c_str(), 0777), 0);
  EXPECT_EQ(cache.Find("key"), std::nullopt);
  cache.Store("another", "object");
  EXPECT_FALSE(fs::exists(cache.PathOf("another")));
}

// Whatever the umask of the process is.
TEST_F(CodeCacheTest, TheFolderIsForThisUserAlone) {
  for (const mode_t mask : {0, 022, 0777}) {
    const std::string folder = fmt::format("{}/{:o}/code", folder_, mask);
    const mode_t before = ::umask(mask);
    const ObjectCache cache(folder, 1 << 20);
    cache.Store("key", "object");
    ::umask(before);
    EXPECT_EQ(cache.Find("key"), "object") << folder;
    for (const fs::path& path : {fs::path(folder), fs::path(folder).parent_path()}) {
      struct stat status = {};
      ASSERT_EQ(::stat(path.c_str(), &status), 0) << path;
      EXPECT_EQ(status.st_mode & 07777, 0700u) << path;
    }
  }
}

// A secret that others may have read, or have made, is none.
TEST_F(CodeCacheTest, ASecretThatIsNoneIsMadeAnew) {
  const fs::path secret = folder_ + "/state/heddle/code.key";
  const auto store_and_find = [&] {
    const ObjectCache cache(folder_ + "/code", 1 << 20);
    const bool found = cache.Find("key").has_value();
    cache.Store("key", "object");
    EXPECT_EQ(cache.Find("key"), "object");
    return found;
  };
  EXPECT_FALSE(store_and_find());
  EXPECT_TRUE(store_and_find());
  const std::string first = testing_support::ReadText(secret);
  ASSERT_EQ(::chmod(secret.c_str(), 0644), 0);
  EXPECT_FALSE(store_and_find());
  EXPECT_NE(testing_support::ReadText(secret), first);
  testing_support::WriteText(secret, "short");
  EXPECT_FALSE(store_and_find());
  fs::rename(secret, folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", secret);
  EXPECT_FALSE(store_and_find());
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(secret)));
  EXPECT_TRUE(store_and_find());
  fs::remove_all(folder_ + "/state");
  testing_support::WriteText(folder_ + "/state", "no folder");
  const ObjectCache cache(folder_ + "/code", 1 << 20);
  cache.Store("key", "object");
  EXPECT_EQ(cache.Find("key"), std::nullopt) << "without a secret there is no cache";
}

// A writer that was killed leaves a file that nobody asks for.
TEST_F(CodeCacheTest, WhatInterruptedWritersLeftMakesRoom) {
  const ObjectCache cache(folder_, 10'000);
  const fs::path left = folder_ + "/4711-0.new";
  std::ofstream(left) << std::string(9000, 'x');
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  cache.Store("key", std::string(3000, 'x'));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(cache.Find("key").has_value());
}

TEST_F(CodeCacheTest, TheLeastRecentlyUsedFilesMakeRoom) {
  const ObjectCache cache(folder_, 10'000);
  const std::string object(3000, 'x');
  const auto key = [](int k) { return fmt::format("key {}", k); };
  const auto is_kept = [&](int k) {
    return fs::exists(cache.PathOf(key(k)));
  };  // Asking the cache would be a use.
  const auto store = [&](int k) {
    cache.Store(key(k), object);
    // Files of one clock tick: give them ages.
    fs::last_write_time(cache.PathOf(key(k)), fs::file_time_type::clock::now() - std::chrono::hours(10 - k));
  };
  for (int k = 0; k < 4; ++k) store(k);
  EXPECT_FALSE(is_kept(0));
  EXPECT_EQ(cache.Find(key(1)), object);
  store(4);
  EXPECT_TRUE(is_kept(1)) << "it is the oldest, but was used last";
  EXPECT_FALSE(is_kept(2));
  EXPECT_TRUE(is_kept(3));
  EXPECT_TRUE(is_kept(4));
}

TEST_F(CodeCacheTest, AFolderThatCannotBeWrittenIsNoError) {
  CodegenOptions options;
  options.cache_folder = "/proc/heddle/code";
  const auto code = GeneratedRegions(options)->Compile(AddNumber(1));
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  EXPECT_TRUE(IsRight(AddNumber(1), **code));
}

// Processes that compile the same regions into a cache that is too small for them.
TEST_F(CodeCacheTest, ProcessesShareAFolder) {
  ASSERT_TRUE(Source()->Compile(AddNumber(0)).ok());
  const auto bytes = static_cast<int64_t>(fs::file_size(Files().at(0)));
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool right = true;
      for (int round = 0; round < 3; ++round) {
        const auto source = Source(bytes * 4);
        for (int k = 0; k < 8; ++k) {
          const Region region = AddNumber((k + child) % 8);
          const auto code = source->Compile(region);
          right = right && code.ok() && IsRight(region, **code);
        }
      }
      ::_exit(right ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  ASSERT_TRUE(Source(bytes * 4)->Compile(AddNumber(77)).ok());
  EXPECT_LE(Files().size(), 4u);
  for (const fs::path& file : Files()) EXPECT_EQ(file.extension(), ".code");
}

TEST_F(CodeCacheTest, NoPageIsWritableAndExecutable) {
  const auto code = Source()->Compile(AddNumber(1));
  ASSERT_TRUE(code.ok());
  std::ifstream maps("/proc/self/maps");
  int executable = 0;
  for (std::string line; std::getline(maps, line);) {
    const std::string rights = line.substr(line.find(' ') + 1, 4);
    EXPECT_FALSE(rights[1] == 'w' && rights[2] == 'x') << line;
    if (rights[2] == 'x' && line.find('/') == std::string::npos && line.find('[') == std::string::npos)
      ++executable;
  }
  EXPECT_GT(executable, 0) << "the generated code is nowhere";
}

TEST_F(CodeCacheTest, AMalformedRegionIsAnError) {
  Region region = AddNumber(1);
  region.outputs[0].node = 9;
  const auto code = Source()->Compile(region);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().code(), StatusCode::kInternal);
}

// What a copy of this program far from the module does; started by the next test.
TEST(AbsentModuleTest, DISABLED_InACopyOfThisProgram) {
  const auto source = GeneratedRegions();
  for (int k = 0; k < 2; ++k) {
    const auto code = source->Compile(AddNumber(1));
    ASSERT_FALSE(code.ok());
    EXPECT_EQ(code.status().code(), StatusCode::kUnavailable);
    EXPECT_NE(code.status().message().find("libheddle_codegen.so"), std::string::npos)
        << code.status().ToString();
  }
  EXPECT_EQ(source->statistics().failed, 2);
}

TEST_F(CodeCacheTest, WithoutTheModuleARequestFailsCleanly) {
  CopyProgram();
  ExpectCopyPasses("AbsentModuleTest.*");
}

// What copies with a module do, on the default cache; started by the next test.
TEST(CopiedModuleTest, DISABLED_Compiles) {
  const auto source = GeneratedRegions();
  ASSERT_TRUE(source->Compile(AddNumber(1)).ok());
  EXPECT_EQ(source->statistics().compiled, 1);
}

// Started by the next test, too.
TEST(CopiedModuleTest, DISABLED_FindsCodeOnDisk) {
  const auto source = GeneratedRegions();
  ASSERT_TRUE(source->Compile(AddNumber(1)).ok());
  EXPECT_EQ(source->statistics().from_disk, 1);
}

// The build id is what the linker made of the module's contents; another one is another module.
TEST_F(CodeCacheTest, CodeOfAnotherModuleIsNotUsed) {
  CopyProgram();
  const fs::path module = folder_ + "/bin/libheddle_codegen.so";
  fs::copy_file(HEDDLE_BINARY_DIR "/libheddle_codegen.so", module);
  ExpectCopyPasses("CopiedModuleTest.DISABLED_Compiles");
  ExpectCopyPasses("CopiedModuleTest.DISABLED_FindsCodeOnDisk");

  const Result<const CodeModule*> ours = CodeModule::Open();
  ASSERT_TRUE(ours.ok());
  const std::string identity((*ours)->identity());
  const std::string digits = identity.substr(identity.rfind(' ') + 1);
  std::string build_id;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    build_id += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  std::string bytes(fs::file_size(module), '\0');
  std::ifstream(module, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const size_t at = bytes.find(build_id);
  ASSERT_TRUE(build_id.size() >= 8 && at != std::string::npos) << identity;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(module, std::ios::binary | std::ios::trunc) << bytes;
  ExpectCopyPasses("CopiedModuleTest.DISABLED_Compiles");
  ExpectCopyPasses("CopiedModuleTest.DISABLED_FindsCodeOnDisk");
}

}  // namespace
}  // namespace heddle::codegen
