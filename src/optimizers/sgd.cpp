// Stochastic gradient descent (Robbins and Monro, "A stochastic approximation method", 1951).
#include "optimizers/sgd.h"

#include "core/error.h"

namespace tutti {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(size_t size) : size_(size) {}

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(x.size() == size_ && g.size() == size_);
    const auto rate = static_cast<float>(lr);
    for (size_t i = 0; i < size_; ++i) x[i] -= rate * g[i];
    ++steps_;
  }
  std::vector<std::span<float>> state() override { return {}; }
  int64_t steps() const override { return steps_; }

 private:
  size_t size_;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> SgdRule::make(const Layout& layout, double) const {
  return std::make_unique<Sgd>(layout.size);
}

}  // namespace tutti
