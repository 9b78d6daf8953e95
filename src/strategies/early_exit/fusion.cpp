#include "strategies/early_exit/fusion.h"

#include <algorithm>

#include "core/error.h"
#include "models/builder.h"

namespace tutti {
namespace {

// Returns where the values of each part go. The parts of an image go to their windows of the whole.
std::vector<size_t> places_of(const Views& views, const std::vector<int64_t>& part) {
  const bool image = part.size() == 3;
  const auto length = [&](size_t i) { return static_cast<size_t>(part[i]); };
  const size_t channels = image ? length(0) : 1, height = image ? length(1) : 1;
  const size_t width = part.size() == 3 ? length(2) : length(0);
  const size_t columns = image ? views.columns() : views.count();
  std::vector<size_t> places;
  places.reserve(views.count() * channels * height * width);
  for (size_t view = 0; view < views.count(); ++view)
    for (size_t y = 0; y < height; ++y)
      for (size_t x = 0; x < width * channels; ++x) {
        const size_t row = view / columns * height + y;
        places.push_back((row * columns + view % columns) * width * channels + x);
      }
  return places;
}

}  // namespace

std::vector<int64_t> fused_shape(Fuse how, const Views& views, const std::vector<int64_t>& part) {
  if (how != Fuse::kConcat) return part;
  if (part.size() != 3) return {elements(part) * static_cast<int64_t>(views.count())};
  return {part[0], part[1] * static_cast<int64_t>(views.rows()),
          part[2] * static_cast<int64_t>(views.columns())};
}

Fusion::Fusion(Fuse how, const Views& views, const std::vector<int64_t>& part)
    : how_(how),
      parts_(views.count()),
      part_values_(static_cast<size_t>(elements(part))),
      values_(static_cast<size_t>(elements(fused_shape(how, views, part)))) {
  TUTTI_CHECK(part.size() == 1 || part.size() == 3);
  if (how == Fuse::kConcat) places_ = places_of(views, part);
}

void Fusion::forward(const std::vector<std::vector<float>>& parts, std::vector<float>& fused) {
  TUTTI_CHECK(parts.size() == parts_);
  const size_t samples = parts[0].size() / part_values_;
  fused.resize(samples * values_);
  if (how_ == Fuse::kConcat) {
    for (size_t part = 0; part < parts_; ++part)
      for (size_t s = 0; s < samples; ++s)
        for (size_t i = 0; i < part_values_; ++i)
          fused[s * values_ + places_[part * part_values_ + i]] = parts[part][s * part_values_ + i];
    return;
  }
  winners_.assign(how_ == Fuse::kMax ? fused.size() : 0, 0);
  std::copy(parts[0].begin(), parts[0].end(), fused.begin());
  for (size_t part = 1; part < parts_; ++part)
    for (size_t i = 0; i < fused.size(); ++i) {
      if (how_ == Fuse::kMean) {
        fused[i] += parts[part][i];
      } else if (parts[part][i] > fused[i]) {
        fused[i] = parts[part][i];
        winners_[i] = static_cast<uint32_t>(part);
      }
    }
  if (how_ == Fuse::kMean)
    for (float& value : fused) value /= static_cast<float>(parts_);
}

void Fusion::backward(std::span<const float> slope, std::vector<std::vector<float>>& slopes) const {
  const size_t samples = slope.size() / values_;
  slopes.resize(parts_);
  for (size_t part = 0; part < parts_; ++part) {
    std::vector<float>& own = slopes[part];
    own.resize(samples * part_values_);
    for (size_t s = 0; s < samples; ++s)
      for (size_t i = 0; i < part_values_; ++i) {
        const size_t at = s * part_values_ + i;
        if (how_ == Fuse::kConcat)
          own[at] = slope[s * values_ + places_[part * part_values_ + i]];
        else if (how_ == Fuse::kMean)
          own[at] = slope[at] / static_cast<float>(parts_);
        else
          own[at] = winners_[at] == part ? slope[at] : 0;
      }
  }
}

}  // namespace tutti
