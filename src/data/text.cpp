// Plain text, character by character: the `context` bytes before a position, one-hot, predict the
// byte at it. The vocabulary is the distinct bytes of the file in ascending order.
#include "data/readers.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "data/input_file.h"

namespace tutti {
namespace {

// Printable characters as themselves, others as \xNN.
std::string name_of(uint8_t byte) {
  if (byte >= 0x20 && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  return fmt::format("\\x{:02x}", byte);
}

class Text : public Dataset {
 public:
  // `codes` holds, for each character, its position in `vocabulary`.
  Text(std::vector<uint8_t> codes, std::vector<uint8_t> vocabulary, size_t context)
      : codes_(std::move(codes)), vocabulary_(std::move(vocabulary)), context_(context) {}

  size_t size() const override { return codes_.size() - context_; }
  std::vector<int64_t> sample_shape() const override {
    return {static_cast<int64_t>(context_ * vocabulary_.size())};
  }
  int64_t classes() const override { return static_cast<int64_t>(vocabulary_.size()); }
  std::vector<std::string> class_names() const override {
    std::vector<std::string> names;
    for (const uint8_t byte : vocabulary_) names.push_back(name_of(byte));
    return names;
  }

  // Sample i is the character at i + context.
  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    const size_t width = context_ * vocabulary_.size();
    batch.samples.assign(samples.begin(), samples.end());
    batch.features.assign(samples.size() * width, 0.0f);
    batch.labels.resize(samples.size());
    batch.targets.clear();
    for (size_t i = 0; i < samples.size(); ++i) {
      const size_t start = samples[i];
      TUTTI_CHECK(start < size());
      float* row = batch.features.data() + i * width;
      for (size_t j = 0; j < context_; ++j) row[j * vocabulary_.size() + codes_[start + j]] = 1;
      batch.labels[i] = codes_[start + context_];
    }
  }

  size_t memory_bytes() const override { return codes_.size(); }

 private:
  std::vector<uint8_t> codes_, vocabulary_;
  size_t context_;
};

void refuse_short(const DataConfig& config, size_t size) {
  if (size <= static_cast<size_t>(config.context) + 2)
    throw DataError(
        fmt::format("{}: {} characters are too few for a context of {}; lower "
                    "task.data.context or give a longer text",
                    config.path, size, config.context));
  if (size > UINT32_MAX)
    throw DataError(
        fmt::format("{}: texts of 4 GiB and more are not supported; split the file", config.path));
}

}  // namespace

std::shared_ptr<const Dataset> read_text_like(const DataConfig& config,
                                              const std::vector<std::string>& names) {
  std::vector<uint8_t> content = InputFile(config.path).read_rest();
  refuse_short(config, content.size());
  std::array<int, 256> code{};
  code.fill(-1);
  std::vector<uint8_t> vocabulary;
  for (size_t byte = 0; byte < code.size(); ++byte)
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name_of(static_cast<uint8_t>(byte))) {
        code[byte] = static_cast<int>(i);
        vocabulary.push_back(static_cast<uint8_t>(byte));
      }
  for (uint8_t& byte : content) {
    if (code[byte] < 0)
      throw DataError(
          fmt::format("{}: the character {} did not occur in the text that the model "
                      "was trained on",
                      config.path, name_of(byte)));
    byte = static_cast<uint8_t>(code[byte]);
  }
  return std::make_shared<Text>(std::move(content), std::move(vocabulary),
                                static_cast<size_t>(config.context));
}

Source read_text(const DataConfig& config) {
  std::vector<uint8_t> content = InputFile(config.path).read_rest();
  const auto context = static_cast<size_t>(config.context);
  refuse_short(config, content.size());
  std::array<bool, 256> seen{};
  for (const uint8_t byte : content) seen[byte] = true;
  std::array<uint8_t, 256> code{};
  std::vector<uint8_t> vocabulary;
  for (size_t byte = 0; byte < seen.size(); ++byte)
    if (seen[byte]) {
      code[byte] = static_cast<uint8_t>(vocabulary.size());
      vocabulary.push_back(static_cast<uint8_t>(byte));
    }
  for (uint8_t& byte : content) byte = code[byte];
  const auto text = std::make_shared<Text>(std::move(content), std::move(vocabulary), context);
  return {text, text->size(), true};
}

}  // namespace tutti
