// Plain text, character by character: the `context` bytes before a position, one-hot, predict the
// byte at it. The vocabulary is the distinct bytes of the file in ascending order.
#include "data/text.h"

#include "core/error.h"
#include "data/common_keys.h"
#include "data/prediction.h"
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

void TextData::visit(Visitor& v) {
  visit_path(v, path);
  v.field("context", context, {1, 4096}, "how many characters predict the next");
}

Source TextData::read(uint64_t) const {
  const auto text =
      std::make_shared<Text>(read_coded_text(path, context), static_cast<size_t>(context));
  return {text, text->size(), true};
}

PredictionData TextData::read_like(const DataDescription& trained_on, const std::string& file,
                                  const std::string&) const {
  return {std::make_shared<Text>(read_coded_text_like(file, context, trained_on.class_names),
                                static_cast<size_t>(context)),
          true};
}

}  // namespace tutti
