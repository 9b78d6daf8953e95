#include "strategies/early_exit/activation_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"

namespace tutti {

ActivationCode::ActivationCode(size_t values, int64_t bits, bool negative)
    : values_(values), bits_(static_cast<size_t>(bits)), least_(negative ? -1.0F : 0.0F) {
  TUTTI_CHECK(supports(bits));
}

size_t ActivationCode::sample_bytes() const { return (values_ * bits_ + 7) / 8; }

void ActivationCode::encode(std::span<const float> values, std::span<std::byte> wire) const {
  const size_t samples = values.size() / values_;
  TUTTI_CHECK(wire.size() == samples * sample_bytes());
  if (exact()) {
    if (!values.empty()) std::memcpy(wire.data(), values.data(), values.size_bytes());
    return;
  }
  std::fill(wire.begin(), wire.end(), std::byte{0});
  const auto levels = static_cast<float>((1U << bits_) - 1);
  const float scale = levels / (1 - least_);
  for (size_t s = 0; s < samples; ++s) {
    std::byte* out = wire.data() + s * sample_bytes();
    const float* in = values.data() + s * values_;
    for (size_t i = 0; i < values_; ++i) {
      // Not a number becomes the least: a diverged run shows by its loss.
      const float clipped = in[i] > least_ ? std::min(in[i], 1.0F) : least_;
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative, and this loop has to be quick
      const auto level = static_cast<uint32_t>((clipped - least_) * scale + 0.5F);
      const size_t bit = i * bits_;
      out[bit / 8] |= static_cast<std::byte>(level << (bit % 8));
    }
  }
}

void ActivationCode::decode(std::span<const std::byte> wire, std::span<float> values) const {
  const size_t samples = values.size() / values_;
  TUTTI_CHECK(wire.size() == samples * sample_bytes());
  if (exact()) {
    if (!values.empty()) std::memcpy(values.data(), wire.data(), wire.size());
    return;
  }
  const uint32_t mask = (1U << bits_) - 1;
  const float step = (1 - least_) / static_cast<float>(mask);
  for (size_t s = 0; s < samples; ++s) {
    const std::byte* in = wire.data() + s * sample_bytes();
    float* out = values.data() + s * values_;
    for (size_t i = 0; i < values_; ++i) {
      const size_t bit = i * bits_;
      const uint32_t level = static_cast<uint32_t>(in[bit / 8]) >> (bit % 8) & mask;
      out[i] = least_ + step * static_cast<float>(level);
    }
  }
}

void ActivationCode::pass_back(std::span<const float> values, std::span<float> slope) const {
  TUTTI_CHECK(values.size() == slope.size());
  if (exact()) return;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < least_ || values[i] > 1) slope[i] = 0;
}

// Pooling, flattening and dropout keep the sign of what a relu made.
bool may_be_negative(const std::vector<Layer>& layers) {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (layer->kind == LayerKind::kRelu) return false;
    if (layer->kind != LayerKind::kMaxPool && layer->kind != LayerKind::kAveragePool &&
        layer->kind != LayerKind::kFlatten && layer->kind != LayerKind::kDropout)
      return true;
  }
  return true;
}

}  // namespace tutti
