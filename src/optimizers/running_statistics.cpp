// Values that follow the data instead of descending a loss: the running means of batch norm.
//
// In the place of its gradient a model tells how far such a value is off: the value less what the
// batch shows, averaged over samples as gradients are. So whatever merges gradients or parameters
// merges statistics as well, by the mean over samples, and nobody has a second buffer to send. What
// they must not get is what a gradient gets: rate, momentum, clipping, decay. Each moves by a fixed
// share of its distance.
#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"
#include "optimizers/optimizer.h"

namespace tutti {
namespace {

class RunningStatistics : public Optimizer {
 public:
  RunningStatistics(std::unique_ptr<Optimizer> inner, const Layout& layout)
      : inner_(std::move(inner)), gradient_(layout.size) {
    size_t values = 0;
    for (const Tensor& tensor : layout.tensors) {
      if (tensor.running_rate == 0) continue;
      statistics_.push_back(tensor);
      values += tensor.range.size();
    }
    kept_.resize(values);
  }

  // The inner optimizer sees gradients of zero, which leave norms and moments of all other values
  // as they are, and what it does to the statistics all the same (weight decay) is undone.
  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(x.size() == gradient_.size() && g.size() == gradient_.size());
    std::copy(g.begin(), g.end(), gradient_.data());
    float* next = kept_.data();
    for (const Tensor& tensor : statistics_) {
      const auto rate = static_cast<float>(tensor.running_rate);
      for (size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
        *next++ = x[i] - rate * g[i];
        gradient_.data()[i] = 0;
      }
    }
    inner_->step(x, gradient_.span(), lr);
    next = kept_.data();
    for (const Tensor& tensor : statistics_)
      for (size_t i = tensor.range.begin; i < tensor.range.end; ++i) x[i] = *next++;
  }
  std::vector<std::span<float>> state() override { return inner_->state(); }
  int64_t steps() const override { return inner_->steps(); }
  void resume(int64_t steps) override { inner_->resume(steps); }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::vector<Tensor> statistics_;
  Buffer<float> gradient_;   // scratch, as in weight_decay.cpp
  std::vector<float> kept_;  // scratch: the statistics after the step
};

}  // namespace

std::unique_ptr<Optimizer> with_running_statistics(std::unique_ptr<Optimizer> inner,
                                                   const Layout& layout) {
  if (!layout.has_statistics()) return inner;
  return std::make_unique<RunningStatistics>(std::move(inner), layout);
}

}  // namespace tutti
