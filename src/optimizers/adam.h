// [optimizer] kind = "adam", and the two moments that Adam, AdamW and LAMB share.
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct AdamSettings {
  double beta1 = 0.9;    // share of the mean that is kept
  double beta2 = 0.999;  // share of the mean of squares that is kept
  double eps = 1e-8;     // added to the root of the squares

  void visit(Visitor& visitor);
};

struct AdamRule : UpdateRule {
  AdamSettings moments;

  void visit(Visitor& visitor) override { moments.visit(visitor); }
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
};

class AdamMoments {
 public:
  AdamMoments(const AdamSettings& settings, size_t size);

  // m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  x -= lr m^ / (sqrt(v^) + eps), where the hats
  // divide by 1 - b^t: the moments start at zero and would be too small at first.
  void update(std::span<float> x, std::span<const float> g, double lr);
  // The same with u = m^ / (sqrt(v^) + eps) in place of the step.
  void direction(std::span<const float> g, std::span<float> u);

  std::vector<std::span<float>> state() { return {mean_, squares_}; }
  int64_t steps() const { return steps_; }
  void resume(int64_t steps) { steps_ = steps; }

 private:
  struct Coefficients {
    float b1, b2, fresh1, fresh2, eps;
    float rate;    // times the mean
    float unbias;  // times the root of the squares
  };
  Coefficients begin_step(double lr);

  AdamSettings settings_;
  std::vector<float> mean_, squares_;
  int64_t steps_ = 0;
};

}  // namespace tutti
