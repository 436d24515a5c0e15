// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

// Objects of OpenSSL that are freed with their owner, and PEM texts of them.
namespace heddle::cluster::openssl {

template <typename Object, void (*free)(Object*)>
struct Free {
  void operator()(Object* object) const { free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION, X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, Free<BIGNUM, BN_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX, SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL, SSL_free>>;

constexpr int kVersion3 = 2;  ///< Of X.509, as X509_set_version() counts.

/// The first one in a PEM text; nullptr when there is none, or a password locks it, for which nobody is
/// asked.
Certificate ParseCertificate(const std::string& text);
Key ParseKey(const std::string& text);

/// A new key of the curve P-256; nullptr when there is no memory.
Key MakeKey();
/// In the words of OpenSSL's configuration files: "critical,CA:TRUE". False when they are wrong.
bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value);
/// As PEM texts. False when there is no memory.
bool WritePem(X509* certificate, EVP_PKEY* key, std::string* certificate_text, std::string* key_text);

}  // namespace heddle::cluster::openssl
