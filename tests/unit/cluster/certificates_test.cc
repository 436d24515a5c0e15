// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/certificates.h"

#include <gtest/gtest.h>

#include "cluster/network/openssl_objects.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

// RFC 5280: four bytes, or sixteen. A certificate may say what it likes.
TEST(CertificatesTest, AnAddressOfAnotherLengthIsNone) {
  const openssl::Key key = openssl::MakeKey();
  const openssl::Certificate certificate(X509_new());
  GENERAL_NAMES* const names = GENERAL_NAMES_new();
  for (const int length : {1, 4, 5, 15, 16, 17}) {
    GENERAL_NAME* const name = GENERAL_NAME_new();
    ASN1_OCTET_STRING* const bytes = ASN1_OCTET_STRING_new();
    const std::string value(static_cast<size_t>(length), '\1');
    ASN1_OCTET_STRING_set(bytes, reinterpret_cast<const unsigned char*>(value.data()), length);
    GENERAL_NAME_set0_value(name, GEN_IPADD, bytes);
    sk_GENERAL_NAME_push(names, name);
  }
  X509_set_version(certificate.get(), openssl::kVersion3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3'600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_add1_ext_i2d(certificate.get(), NID_subject_alt_name, names, 0, 0);
  GENERAL_NAMES_free(names);
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  std::string text, key_text;
  ASSERT_TRUE(openssl::WritePem(certificate.get(), key.get(), &text, &key_text));
  const testing_support::TemporaryFolder folder;
  testing_support::WriteText(folder.path() + "/a.pem", text);
  const Result<CertificateFacts> facts = ReadCertificate(folder.path() + "/a.pem");
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_EQ(facts->names, (std::vector<std::string>{"1.1.1.1", "101:101:101:101:101:101:101:101"}));
}

}  // namespace
}  // namespace heddle::cluster
