// SPDX-License-Identifier: Apache-2.0
#include "ops/io/checksums/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace heddle::ops {
namespace {

std::string Text(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

// FIPS 180-4's examples, and lengths around the end of a block, whose digests are those of coreutils.
TEST(Sha256Test, IsTheStandards) {
  EXPECT_EQ(Text(Sha256({""})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Text(Sha256({"abc"})), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Text(Sha256({"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"})),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Text(Sha256({std::string(1'000'000, 'a')})),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Text(Sha256({std::string(55, 'a')})),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(Text(Sha256({std::string(56, 'a')})),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(Text(Sha256({std::string(64, 'a')})),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(Sha256Test, PartsAreOneText) {
  const std::string text(200, 'x');
  for (size_t cut = 0; cut <= text.size(); ++cut)
    ASSERT_EQ(Sha256({text.substr(0, cut), text.substr(cut)}), Sha256({text})) << cut;
}

// RFC 4231, test cases 1 to 4.
TEST(HmacSha256Test, IsTheStandards) {
  EXPECT_EQ(Text(HmacSha256(std::string(20, '\x0b'), {"Hi There"})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Text(HmacSha256("Jefe", {"what do ya want ", "for nothing?"})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Text(HmacSha256(std::string(20, '\xaa'), {std::string(50, '\xdd')})),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string secret;
  for (char byte = 1; byte <= 25; ++byte) secret.push_back(byte);
  EXPECT_EQ(Text(HmacSha256(secret, {std::string(50, '\xcd')})),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

}  // namespace
}  // namespace heddle::ops
