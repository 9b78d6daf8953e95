#include "data/fingerprint.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace tutti {
namespace {

constexpr size_t kSamplesAtOnce = 256;  // gathered per batch

class Digest {
 public:
  Digest() { crypto_generichash_init(&state_, nullptr, 0, kBytes); }
  // The length is hashed too, so that moving bytes from one part to the next changes the result.
  void add(std::span<const std::byte> bytes) {
    const uint64_t size = bytes.size();
    update(&size, sizeof size);
    update(bytes.data(), bytes.size());
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(std::as_bytes(std::span(values)));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string text() {
    std::array<unsigned char, kBytes> bytes{};
    crypto_generichash_final(&state_, bytes.data(), bytes.size());
    std::array<char, 2 * kBytes + 1> hex{};
    sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
    return hex.data();
  }

 private:
  static constexpr size_t kBytes = crypto_generichash_BYTES_MIN;
  void update(const void* bytes, size_t size) {
    crypto_generichash_update(&state_, static_cast<const unsigned char*>(bytes), size);
  }
  crypto_generichash_state state_;
};

}  // namespace

void Dataset::visit_contents(const VisitBytes& visit) const {
  Batch batch;
  std::vector<uint32_t> samples;
  for (size_t begin = 0; begin < size(); begin += kSamplesAtOnce) {
    samples.resize(std::min(kSamplesAtOnce, size() - begin));
    std::iota(samples.begin(), samples.end(), static_cast<uint32_t>(begin));
    gather(samples, batch);
    visit(std::as_bytes(std::span(batch.features)));
    visit(std::as_bytes(std::span(batch.rows.begins)));
    visit(std::as_bytes(std::span(batch.rows.columns)));
    visit(std::as_bytes(std::span(batch.rows.values)));
    visit(std::as_bytes(std::span(batch.labels)));
    visit(std::as_bytes(std::span(batch.targets)));
  }
}

std::string contents_fingerprint(const Dataset& dataset) {
  Digest digest;
  digest.add(dataset.sample_shape());
  digest.add(std::vector<int64_t>{dataset.classes()});
  for (const std::string& name : dataset.class_names()) digest.add(name);
  dataset.visit_contents([&](std::span<const std::byte> bytes) { digest.add(bytes); });
  return digest.text();
}

std::string split_fingerprint(const Splits& splits) {
  Digest digest;
  for (const auto* split : {&splits.train, &splits.validation, &splits.test}) digest.add(*split);
  return digest.text();
}

std::string text_fingerprint(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.text();
}

std::string fingerprint(const Data& data) {
  return text_fingerprint(contents_fingerprint(*data.dataset) + split_fingerprint(data.splits));
}

}  // namespace tutti
