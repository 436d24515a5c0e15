// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>

#include "tests/support/process.h"

namespace heddle::testing_support {

/// A key and its certificate, signed by `issuer` or by itself, in files PATH.pem and PATH.key.
class TestCertificate {
 public:
  struct Options {
    std::string name = "localhost";
    int64_t begins_s = -3'600;  ///< From now.
    int64_t ends_s = 3'600;
    bool authority = false;
    const char* curve = "P-256";
  };
  TestCertificate(const std::string& path, const Options& options, const TestCertificate* issuer = nullptr)
      : path_(path), key_(EVP_EC_gen(options.curve)), certificate_(X509_new()) {
    static int64_t serial = 0;
    X509_NAME* subject = X509_get_subject_name(certificate_);
    X509_set_version(certificate_, 2);
    ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate_), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate_), options.begins_s);
    X509_gmtime_adj(X509_getm_notAfter(certificate_), options.ends_s);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(options.name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate_,
                         issuer == nullptr ? subject : X509_get_subject_name(issuer->certificate_));
    X509_set_pubkey(certificate_, key_);
    AddExtension(NID_basic_constraints, options.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    AddExtension(NID_subject_alt_name, "DNS:" + options.name);
    X509_sign(certificate_, issuer == nullptr ? key_ : issuer->key_, EVP_sha256());
    BIO* file = BIO_new_file(certificate().c_str(), "w");
    PEM_write_bio_X509(file, certificate_);
    BIO_free_all(file);
    file = BIO_new_file(key().c_str(), "w");
    PEM_write_bio_PrivateKey(file, key_, nullptr, nullptr, 0, nullptr, nullptr);
    BIO_free_all(file);
  }
  ~TestCertificate() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  TestCertificate(const TestCertificate&) = delete;

  std::string certificate() const { return path_ + ".pem"; }
  std::string key() const { return path_ + ".key"; }

 private:
  void AddExtension(int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate_, certificate_, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    X509_add_ext(certificate_, extension, -1);
    X509_EXTENSION_free(extension);
  }

  const std::string path_;
  EVP_PKEY* key_;
  X509* certificate_;
};

}  // namespace heddle::testing_support
