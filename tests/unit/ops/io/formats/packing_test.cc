// SPDX-License-Identifier: Apache-2.0
// Files that are packed as a whole: what is packed comes back, from everybody's packers and ours, in one
// member or many, whole in memory or piece by piece; and what is damaged is told.
#include "ops/io/files/packing.h"

#include <zlib.h>
#include <zstd.h>

#include "core/environment/random.h"
#include "ops/base/parallel.h"
#include "ops/io/files/gzip.h"
#include "ops/io/files/zstd.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class PackingTest : public FormatsTest {
 protected:
  // What a file of this name holds, read as readers do: pieces of any place and size, several at once.
  std::string Unpacked(const std::string& name) {
    const Result<std::unique_ptr<InputFile>> file = files_->Open(name);
    if (!file.ok()) return file.status().ToString();
    std::string whole(static_cast<size_t>((*file)->size()), '\0');
    std::atomic<bool> failed = false;
    constexpr int64_t kStep = 700'001;
    ParallelFor((static_cast<int64_t>(whole.size()) + kStep - 1) / kStep, 1, [&](int64_t begin, int64_t end) {
      CountedBytes buffer;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * kStep, count = std::min(kStep, static_cast<int64_t>(whole.size()) - at);
        const Result<std::string_view> piece = (*file)->Read(at, count, &buffer);
        if (!piece.ok() || piece->size() != static_cast<size_t>(count)) {
          failed = true;
          return;
        }
        std::copy(piece->begin(), piece->end(), whole.begin() + at);
      }
    });
    return failed ? "a piece cannot be read" : whole;
  }
};

// Text that packs to about half.
std::string Numbers(size_t bytes, uint64_t seed) {
  SeededRandom random(seed);
  std::string text;
  while (text.size() < bytes) text += fmt::format("{},{}\n", random.Next(), random.Next() % 1000);
  return text;
}

std::string Gzipped(const std::string& text, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string ZstdFrame(const std::string& text, bool with_size = true) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  // In two steps: the size of the whole is not known to the packer then.
  if (with_size) ZSTD_CCtx_setPledgedSrcSize(context, text.size());
  ZSTD_compressStream2(context, &to, &from, ZSTD_e_continue);
  while (ZSTD_compressStream2(context, &to, &from, ZSTD_e_end) != 0) {
  }
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

std::string Packed(Packing packing, const std::string& text) {
  std::string out;
  EXPECT_TRUE(Pack(
                  packing,
                  [&](const ByteSink& sink) {
                    // In pieces of odd sizes, as writers give them.
                    for (size_t at = 0; at < text.size(); at += 99'991)
                      HEDDLE_RETURN_IF_ERROR(sink(std::string_view(text).substr(at, 99'991)));
                    return OkStatus();
                  },
                  [&](std::string_view bytes) {
                    out.append(bytes);
                    return OkStatus();
                  })
                  .ok());
  return out;
}

TEST_F(PackingTest, WhatIsPackedComesBack) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 20, size_t{10'500'000}}) {
    std::string text = Numbers(bytes, bytes + 1);
    text.resize(bytes);
    for (const Packing packing : {Packing::kGzip, Packing::kZstd}) {
      SCOPED_TRACE(testing::Message() << Name(packing) << " " << bytes);
      Put("a", Packed(packing, text));
      EXPECT_EQ(PackingOf(Get("a")), packing);
      EXPECT_TRUE(Unpacked("a") == text);
    }
  }
}

TEST_F(PackingTest, BytesDoNotDependOnThreads) {
  Matrix matrix = *Matrix::Dense(9000, 40);
  SeededRandom random(5);
  for (int64_t k = 0; k < matrix.cells(); ++k)
    matrix.mutable_data()[k] = static_cast<double>(random.Next() % 9999);
  for (const FileFormat format :
       {FileFormat::kCsv, FileFormat::kMatrixMarket, FileFormat::kBinary, FileFormat::kNpy, FileFormat::kNpz})
    for (const Packing packing : {Packing::kGzip, Packing::kZstd}) {
      SCOPED_TRACE(testing::Message() << Name(format) << " " << Name(packing));
      std::string first;
      for (const int threads : {1, 3}) {
        Arena arena(threads);
        arena.Execute([&] {
          ASSERT_TRUE(Write(matrix, "m", {.format = format, .header = true, .packing = packing}).ok());
          if (first.empty()) first = Get("m");
          EXPECT_TRUE(Get("m") == first);
          EXPECT_TRUE(Matrix::SameCells(*Read("m"), matrix));
        });
      }
    }
}

TEST_F(PackingTest, EverybodysGzipIsReadInPieces) {
  const std::string text = Numbers(11'000'000, 1);
  for (const int level : {0, 6}) {
    SCOPED_TRACE(level);
    Put("a", Gzipped(text, level));
    ASSERT_GT(Get("a").size(), size_t{4} << 20);
    EXPECT_TRUE(Unpacked("a") == text);
    EXPECT_TRUE(Unpacked("a") == text);  // with what was found the first time
  }
  // Members of all sizes, some of nothing, with zeros behind the last.
  std::string members, whole;
  for (const size_t bytes : {0, 1, 3'000'000, 0, 17, 5'000'000, 2'500'000, 0}) {
    std::string part = Numbers(bytes, bytes + 3);
    part.resize(bytes);
    members += Gzipped(part);
    whole += part;
  }
  Put("a", members);
  EXPECT_TRUE(Unpacked("a") == whole);
  Put("a", members + std::string(2'000'000, '\0'));
  EXPECT_TRUE(Unpacked("a") == whole);
  Put("a", members + "x");
  EXPECT_EQ(Unpacked("a"), "cannot read 'a': its gzip data is damaged or cut short");
  // Ours and others' together.
  Put("a", Packed(Packing::kGzip, text) + Gzipped(text));
  EXPECT_TRUE(Unpacked("a") == text + text);
  // So much of nothing that a piece would be too long.
  const std::string zeros(40'000'000, '0');
  Put("a", Gzipped(zeros) + Gzipped(text));
  EXPECT_TRUE(Unpacked("a") == zeros + text);
}

TEST_F(PackingTest, MembersOfBgzipAreFoundByTheirLengths) {
  const std::string text = Numbers(9'000'000, 2);
  std::string packed;
  for (size_t at = 0; at < text.size(); at += 60'000) {
    const std::string member = Gzipped(text.substr(at, 60'000));
    std::string marked = member.substr(0, 3) + "\x04" + member.substr(4, 6);
    const size_t length = member.size() + 8 - 1;
    marked += std::string("\6\0BC\2\0", 6);
    marked += static_cast<char>(length & 255);
    marked += static_cast<char>(length >> 8);
    packed += marked + member.substr(10);
  }
  Put("a", packed);
  ASSERT_GT(packed.size(), size_t{4} << 20);
  const Result<std::unique_ptr<InputFile>> file = files_->Open("a");
  EXPECT_TRUE(Unpacked("a") == text);
  // A length that leads nowhere is not believed.
  packed[16] = static_cast<char>(packed[16] + 1);
  Put("a", packed);
  EXPECT_TRUE(Unpacked("a") == text);
}

TEST_F(PackingTest, EverybodysZstdIsRead) {
  const std::string text = Numbers(12'000'000, 4);
  const std::string skipped = std::string("\x50\x2a\x4d\x18\3\0\0\0abc", 11);
  for (const std::string& packed :
       {ZstdFrame(text), ZstdFrame(text, false), skipped + ZstdFrame(text) + skipped,
        ZstdFrame(text) + ZstdFrame("") + ZstdFrame(text.substr(0, 100)),
        ZstdFrame(text) + ZstdFrame(text, false)}) {
    Put("a", packed);
    ASSERT_GT(packed.size(), size_t{4} << 20);
    const std::string back = Unpacked("a");
    EXPECT_TRUE(back == text || back == text + text || back == text + text.substr(0, 100));
    EXPECT_GE(back.size(), text.size());
  }
  Put("small", ZstdFrame("1,2\n3,4\n"));
  ExpectCells(Read("small"), 2, 2, {1, 2, 3, 4});
}

TEST_F(PackingTest, DamageIsTold) {
  const std::string text = Numbers(12'000'000, 6);
  for (const Packing packing : {Packing::kGzip, Packing::kZstd}) {
    const std::string damaged =
        fmt::format("cannot read 'a': its {} data is damaged or cut short", Name(packing));
    const std::string small = Packed(packing, text.substr(0, 1000)), large = Packed(packing, text);
    for (const size_t cut : {small.size() - 1, small.size() / 2, size_t{9}}) {
      Put("a", small.substr(0, cut));
      EXPECT_EQ(Unpacked("a"), damaged) << cut;
    }
    for (const size_t cut : {large.size() - 1, large.size() - 100'000, size_t{5} << 20}) {
      Put("a", large.substr(0, cut));
      EXPECT_EQ(Unpacked("a"), damaged) << cut;
    }
    std::string changed = large;
    changed[large.size() / 2] ^= 4;
    Put("a", changed);
    const std::string fault = Unpacked("a");
    EXPECT_TRUE(fault == damaged || fault == "a piece cannot be read") << fault.substr(0, 100);
  }
}

TEST_F(PackingTest, EachPackerIsNamed) {
  Put("a", Packed(Packing::kZstd, Numbers(1000, 1)).substr(0, 50));
  EXPECT_EQ(Unpacked("a"), "cannot read 'a': its zstd data is damaged or cut short");
}

TEST_F(PackingTest, NamesAndOptionsSayHowToPack) {
  const Matrix matrix = Make(2, 2, {1, 2, 3, 4});
  const auto packing_of = [&](const std::string& name, std::optional<Packing> packing = std::nullopt) {
    EXPECT_TRUE(Write(matrix, name, {.format = FileFormat::kCsv, .packing = packing}).ok());
    ExpectCells(Read(name), 2, 2, {1, 2, 3, 4});
    EXPECT_EQ(Get(name + ".mtd").substr(0, 1), "{");  // never packed
    return PackingOf(Get(name));
  };
  EXPECT_EQ(packing_of("a.csv"), Packing::kNone);
  EXPECT_EQ(packing_of("a.csv.gz"), Packing::kGzip);
  EXPECT_EQ(packing_of("a.csv.GZ"), Packing::kGzip);
  EXPECT_EQ(packing_of("a.zst"), Packing::kZstd);
  EXPECT_EQ(packing_of("a.csv", Packing::kZstd), Packing::kZstd);
  EXPECT_EQ(packing_of("a.csv.gz", Packing::kNone), Packing::kNone);
  for (const FileFormat format :
       {FileFormat::kText, FileFormat::kMatrixMarket, FileFormat::kCsv, FileFormat::kLibsvm,
        FileFormat::kBinary, FileFormat::kNpy, FileFormat::kNpz})
    for (const char* ending : {".gz", ".zst"}) {
      const std::string name = "m" + std::string(ending);
      EXPECT_TRUE(Write(matrix, name, {.format = format, .separator = " "}).ok());
      if (format != FileFormat::kCsv) ExpectCells(Read(name), 2, 2, {1, 2, 3, 4});
    }
  ASSERT_TRUE(WriteValue(Scalar(2.5), "s.gz", {}, *files_).ok());
  EXPECT_EQ(PackingOf(Get("s.gz")), Packing::kGzip);
}

TEST_F(PackingTest, LargeTablesAreReadAsIfTheyWereNotPacked) {
  std::string text;
  for (int64_t i = 0; i < 400'000; ++i)
    text += fmt::format("{},{},{}\n", i, i * 7919 % 100'003, 1.0 / (i + 1));
  Put("plain", text);
  const Result<Matrix> plain = Read("plain");
  ASSERT_TRUE(plain.ok());
  for (const std::string& packed :
       {Gzipped(text), Packed(Packing::kGzip, text), ZstdFrame(text), Packed(Packing::kZstd, text)}) {
    Put("packed", packed);
    ASSERT_GT(packed.size(), size_t{4} << 20);
    EXPECT_TRUE(Matrix::SameCells(*Read("packed"), *plain));
  }
}

}  // namespace
}  // namespace heddle::ops
