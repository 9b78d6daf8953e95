// Clipping by norm (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural
// networks", ICML 2013): a gradient whose norm exceeds the limit is scaled down to it.
#include "core/bytes.h"
#include "core/error.h"
#include "optimizers/decorators.h"
#include "optimizers/norm.h"

namespace tutti {
namespace {

class Clip : public Optimizer {
 public:
  Clip(std::unique_ptr<Optimizer> inner, double most, size_t size)
      : inner_(std::move(inner)), most_(most), scaled_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(g.size() == scaled_.size());
    const double norm = norm_of(g);
    // A norm that is NaN passes through: the parameters become NaN and the run says it diverged.
    if (!(norm > most_)) return inner_->step(x, g, lr);
    const auto scale = static_cast<float>(most_ / norm);
    float* scaled = scaled_.data();
    for (size_t i = 0; i < g.size(); ++i) scaled[i] = scale * g[i];
    inner_->step(x, scaled_.span(), lr);
  }
  std::vector<std::span<float>> state() override { return inner_->state(); }
  int64_t steps() const override { return inner_->steps(); }
  void resume(int64_t steps) override { inner_->resume(steps); }

 private:
  std::unique_ptr<Optimizer> inner_;
  double most_;
  Buffer<float> scaled_;  // scratch, as in weight_decay.cpp
};

}  // namespace

std::unique_ptr<Optimizer> with_clipping(std::unique_ptr<Optimizer> inner, double most,
                                         size_t size) {
  return std::make_unique<Clip>(std::move(inner), most, size);
}

}  // namespace tutti
