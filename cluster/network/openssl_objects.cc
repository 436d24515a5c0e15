// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/openssl_objects.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace heddle::cluster::openssl {
namespace {

int NoPassword(char*, int, int, void*) { return 0; }

Memory MemoryOf(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string ContentsOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace

Certificate ParseCertificate(const std::string& text) {
  const Memory memory = MemoryOf(text);
  Certificate certificate(PEM_read_bio_X509(memory.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return certificate;
}

Key ParseKey(const std::string& text) {
  const Memory memory = MemoryOf(text);
  Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

Key MakeKey() { return Key(EVP_EC_gen("P-256")); }

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool WritePem(X509* certificate, EVP_PKEY* key, std::string* certificate_text, std::string* key_text) {
  const Memory certificate_memory(BIO_new(BIO_s_mem())), key_memory(BIO_new(BIO_s_mem()));
  if (certificate_memory == nullptr || key_memory == nullptr ||
      PEM_write_bio_X509(certificate_memory.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return false;
  *certificate_text = ContentsOf(certificate_memory.get());
  *key_text = ContentsOf(key_memory.get());
  return true;
}

}  // namespace heddle::cluster::openssl
