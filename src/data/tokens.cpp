// Plain text as sequences: a sample is `context` characters in a row, as codes, and its answers are
// the characters that follow each of them. Samples do not overlap.
#include "data/tokens.h"

#include "core/error.h"
#include "data/common_keys.h"
#include "data/prediction.h"
#include "data/vocabulary.h"

namespace tutti {
namespace {

class Tokens : public Dataset {
 public:
  Tokens(CodedText text, size_t context) : text_(std::move(text)), context_(context) {}

  // The last character only answers.
  size_t size() const override { return (text_.codes.size() - 1) / context_; }
  std::vector<int64_t> sample_shape() const override { return {answers_per_sample()}; }
  int64_t answers_per_sample() const override { return static_cast<int64_t>(context_); }
  int64_t classes() const override { return static_cast<int64_t>(text_.vocabulary.size()); }
  std::vector<std::string> class_names() const override {
    return character_names(text_.vocabulary);
  }

  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    batch.samples.assign(samples.begin(), samples.end());
    batch.features.resize(samples.size() * context_);
    batch.labels.resize(samples.size() * context_);
    batch.targets.clear();
    for (size_t i = 0; i < samples.size(); ++i) {
      TUTTI_CHECK(samples[i] < size());
      const uint8_t* codes = text_.codes.data() + samples[i] * context_;
      for (size_t j = 0; j < context_; ++j) {
        batch.features[i * context_ + j] = codes[j];
        batch.labels[i * context_ + j] = codes[j + 1];
      }
    }
  }

  void visit_contents(const VisitBytes& visit) const override {
    visit(std::as_bytes(std::span(text_.codes)));
  }
  size_t memory_bytes() const override { return text_.codes.size(); }

 private:
  CodedText text_;
  size_t context_;
};

}  // namespace

void TokensData::visit(Visitor& v) {
  visit_path(v, path);
  v.field("context", context, {2, 4096}, "how many characters a sample has");
}

Source TokensData::read(uint64_t) const {
  const auto tokens =
      std::make_shared<Tokens>(read_coded_text(path, context), static_cast<size_t>(context));
  return {tokens, tokens->size(), true};
}

PredictionData TokensData::read_like(const DataDescription& trained_on, const std::string& file,
                                  const std::string&) const {
  return {std::make_shared<Tokens>(read_coded_text_like(file, context, trained_on.class_names),
                                static_cast<size_t>(context)),
          true};
}

}  // namespace tutti
