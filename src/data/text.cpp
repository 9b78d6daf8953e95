// Plain text, character by character: the `context` bytes before a position, one-hot, predict the
// byte at it. The vocabulary is the distinct bytes of the file in ascending order.
#include "core/error.h"
#include "data/readers.h"
#include "data/vocabulary.h"

namespace tutti {
namespace {

class Text : public Dataset {
 public:
  Text(CodedText text, size_t context)
      : codes_(std::move(text.codes)), vocabulary_(std::move(text.vocabulary)), context_(context) {}

  size_t size() const override { return codes_.size() - context_; }
  std::vector<int64_t> sample_shape() const override {
    return {static_cast<int64_t>(context_ * vocabulary_.size())};
  }
  int64_t classes() const override { return static_cast<int64_t>(vocabulary_.size()); }
  std::vector<std::string> class_names() const override { return character_names(vocabulary_); }

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

  void visit_contents(const VisitBytes& visit) const override {
    visit(std::as_bytes(std::span(codes_)));
  }
  size_t memory_bytes() const override { return codes_.size(); }

 private:
  std::vector<uint8_t> codes_, vocabulary_;
  size_t context_;
};

}  // namespace

std::shared_ptr<const Dataset> read_text_like(const DataConfig& config,
                                              const std::vector<std::string>& names) {
  return std::make_shared<Text>(read_coded_text_like(config, names),
                                static_cast<size_t>(config.context));
}

Source read_text(const DataConfig& config) {
  const auto text =
      std::make_shared<Text>(read_coded_text(config), static_cast<size_t>(config.context));
  return {text, text->size(), true};
}

}  // namespace tutti
