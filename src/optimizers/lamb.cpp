// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR
// 2020): Adam's direction, with decoupled weight decay, scaled for each tensor so that the step is
// lr times as long as the tensor itself:
//   u = m^ / (sqrt(v^) + eps) + decay x;  x -= lr (|x| / |u|) u.
#include "optimizers/lamb.h"

#include "core/bytes.h"
#include "core/error.h"
#include "optimizers/norm.h"

namespace tutti {
namespace {

// A tensor that is zero, or is not to move, has no direction to compare with: the plain rate then.
double trust_ratio(double length, double step) {
  return length > 0 && step > 0 ? length / step : 1;
}

class Lamb : public Optimizer {
 public:
  Lamb(const AdamSettings& settings, double decay, const Layout& layout)
      : moments_(settings, layout.size),
        decay_(static_cast<float>(decay)),
        tensors_(layout.tensors),
        direction_(layout.size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(x.size() == direction_.size() && g.size() == direction_.size());
    moments_.direction(g, direction_.span());
    float* u = direction_.data();
    if (decay_ > 0)
      for (size_t i = 0; i < x.size(); ++i) u[i] += decay_ * x[i];
    for (const Tensor& tensor : tensors_) {
      const size_t begin = tensor.range.begin, size = tensor.range.size();
      const double ratio = trust_ratio(norm_of(x.subspan(begin, size)),
                                       norm_of(direction_.span().subspan(begin, size)));
      const auto rate = static_cast<float>(lr * ratio);
      for (size_t i = begin; i < tensor.range.end; ++i) x[i] -= rate * u[i];
    }
  }
  std::vector<std::span<float>> state() override { return moments_.state(); }
  int64_t steps() const override { return moments_.steps(); }
  void resume(int64_t steps) override { moments_.resume(steps); }

 private:
  AdamMoments moments_;
  float decay_;
  std::vector<Tensor> tensors_;
  Buffer<float> direction_;  // scratch
};

}  // namespace

std::unique_ptr<Optimizer> LambRule::make(const Layout& layout, double decay) const {
  return std::make_unique<Lamb>(moments, decay, layout);
}

OptimizerCost LambRule::extra_cost(const Layout& layout) const {
  return {.values = static_cast<double>(layout.size)};  // the direction
}

}  // namespace tutti
