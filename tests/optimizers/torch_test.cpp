// Every optimizer against PyTorch's own, for 100 steps on random gradients at a constant rate.
#include <torch/optim.h>
// The next one needs it.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>

#include <cmath>

#include "core/random.h"
#include "optimizers/shampoo.h"

namespace tutti {
namespace {

constexpr size_t kSize = 1003;  // not a multiple of any vector width
constexpr int kSteps = 100;

using Reference = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

struct Case {
  const char* name;
  OptimizerConfig config;
  Reference reference;
};

OptimizerConfig config_of(const char* kind, double lr, double weight_decay = 0) {
  OptimizerConfig config(kind);
  config.lr = lr;
  config.weight_decay = weight_decay;
  return config;
}

template <class T, class Options>
Reference reference_of(Options options) {
  return [options](std::vector<at::Tensor> parameters) {
    return std::make_unique<T>(std::move(parameters), options);
  };
}

std::vector<Case> cases() {
  using namespace torch::optim;
  std::vector<Case> all;
  for (const double decay : {0.0, 0.01}) {
    all.push_back({"sgd", config_of("sgd", 0.1, decay),
                   reference_of<SGD>(SGDOptions(0.1).weight_decay(decay))});
    all.push_back({"momentum", config_of("momentum", 0.05, decay),
                   reference_of<SGD>(SGDOptions(0.05).momentum(0.9).weight_decay(decay))});
    all.push_back(
        {"nesterov", config_of("nesterov", 0.05, decay),
         reference_of<SGD>(SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(decay))});
    all.push_back({"adagrad", config_of("adagrad", 0.1, decay),
                   reference_of<Adagrad>(AdagradOptions(0.1).eps(1e-8).weight_decay(decay))});
    all.push_back(
        {"rmsprop", config_of("rmsprop", 0.01, decay),
         reference_of<RMSprop>(RMSpropOptions(0.01).alpha(0.9).eps(1e-8).weight_decay(decay))});
    all.push_back({"adam", config_of("adam", 0.01, decay),
                   reference_of<Adam>(AdamOptions(0.01).eps(1e-8).weight_decay(decay))});
    all.push_back({"adamw", config_of("adamw", 0.01, decay),
                   reference_of<AdamW>(AdamWOptions(0.01).eps(1e-8).weight_decay(decay))});
  }
  return all;
}

// Largest difference, relative to the larger of the value and the typical size of the parameters.
// A value that passes near zero is the difference of terms of typical size: both sides round each
// of those terms, by about 6e-8 of it, so next to zero there are no six digits to agree in.
// Relative to the value alone a single such crossing, of which there are some among 1003 x 100
// values, would measure the luck of the draw instead of the optimizer.
double worst_difference(std::span<const float> ours, const at::Tensor& theirs) {
  const double typical = theirs.norm().item<double>() / std::sqrt(static_cast<double>(kSize));
  double worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double reference = theirs.data_ptr<float>()[i];
    worst = std::max(
        worst, std::abs(double{ours[i]} - reference) / std::max(std::abs(reference), typical));
  }
  return worst;
}

at::Tensor random_tensor(uint32_t sequence) {
  Random random(11, Stream::kTest, sequence);
  at::Tensor tensor = torch::empty({static_cast<int64_t>(kSize)});
  for (size_t i = 0; i < kSize; ++i)
    tensor.data_ptr<float>()[i] = static_cast<float>(random.normal());
  return tensor;
}

TEST(AgainstTorch, HundredStepsAgreeToAMillionth) {
  at::set_num_threads(1);
  for (const Case& c : cases()) {
    at::Tensor theirs = random_tensor(0).requires_grad_();
    std::vector<float> ours(theirs.data_ptr<float>(), theirs.data_ptr<float>() + kSize);
    const auto reference = c.reference({theirs});
    const auto optimizer = make_optimizer(c.config, kSize);
    double worst = 0;
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor gradient = random_tensor(1 + static_cast<uint32_t>(step));
      theirs.mutable_grad() = gradient;
      reference->step();
      optimizer->step(ours, {gradient.data_ptr<float>(), kSize}, c.config.lr);
      worst = std::max(worst, worst_difference(ours, theirs));
    }
    EXPECT_LT(worst, 1e-6) << c.name << " with weight decay " << c.config.weight_decay;
    EXPECT_EQ(optimizer->steps(), kSteps);
  }
}

TEST(AgainstTorch, ClippingAgrees) {
  at::Tensor theirs = random_tensor(0).requires_grad_();
  std::vector<float> ours(theirs.data_ptr<float>(), theirs.data_ptr<float>() + kSize);
  torch::optim::SGD reference({theirs}, torch::optim::SGDOptions(0.1));
  OptimizerConfig config = config_of("sgd", 0.1);
  config.clip_norm = 5;
  const auto optimizer = make_optimizer(config, kSize);
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor gradient = random_tensor(1 + static_cast<uint32_t>(step));
    theirs.mutable_grad() = gradient.clone();
    torch::nn::utils::clip_grad_norm_({theirs}, config.clip_norm);
    reference.step();
    optimizer->step(ours, {gradient.data_ptr<float>(), kSize}, config.lr);
  }
  EXPECT_LT(worst_difference(ours, theirs), 1e-6);
}

// The documented exception: with the rate inside the velocity a change of rate acts on new
// gradients only, in PyTorch's form on the old ones too.
TEST(AgainstTorch, MomentumDiffersOnceTheRateChanges) {
  for (const bool nesterov : {false, true}) {
    at::Tensor theirs = random_tensor(0).requires_grad_();
    std::vector<float> ours(theirs.data_ptr<float>(), theirs.data_ptr<float>() + kSize);
    torch::optim::SGD reference({theirs},
                                torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(nesterov));
    const auto optimizer =
        make_optimizer(config_of(nesterov ? "nesterov" : "momentum", 0.1), kSize);
    for (int step = 0; step < 20; ++step) {
      const double rate = step < 10 ? 0.1 : 0.01;
      const at::Tensor gradient = random_tensor(1 + static_cast<uint32_t>(step));
      theirs.mutable_grad() = gradient;
      static_cast<torch::optim::SGDOptions&>(reference.param_groups()[0].options()).lr(rate);
      reference.step();
      optimizer->step(ours, {gradient.data_ptr<float>(), kSize}, rate);
      if (step == 9) {
        EXPECT_LT(worst_difference(ours, theirs), 1e-6);
      }
    }
    EXPECT_GT(worst_difference(ours, theirs), 1e-2);
  }
}

// PyTorch has neither: their papers' formulas, on tensors of double.
std::vector<at::Tensor> random_tensors(const std::vector<std::vector<int64_t>>& shapes,
                                       const at::Tensor& flat) {
  std::vector<at::Tensor> tensors;
  int64_t begin = 0;
  for (const auto& shape : shapes) {
    int64_t size = 1;
    for (const int64_t length : shape) size *= length;
    tensors.push_back(flat.slice(0, begin, begin + size).to(torch::kDouble).view(shape).clone());
    begin += size;
  }
  return tensors;
}

const std::vector<std::vector<int64_t>> kShapes = {{6, 3, 3, 4}, {6}, {20, 36}, {20}, {41}};

Layout layout_of_shapes() {
  std::vector<Tensor> tensors;
  size_t begin = 0;
  for (const auto& shape : kShapes) {
    size_t size = 1;
    for (const int64_t length : shape) size *= static_cast<size_t>(length);
    tensors.push_back({shape, {begin, begin + size}});
    begin += size;
  }
  return {begin, tensors};
}

using Update = std::function<void(size_t tensor, at::Tensor& x, const at::Tensor& g, int step)>;

void compare(const OptimizerConfig& config, const Update& update) {
  const Layout layout = layout_of_shapes();
  ASSERT_EQ(layout.size, kSize);
  const at::Tensor start = random_tensor(0);
  std::vector<float> ours(start.data_ptr<float>(), start.data_ptr<float>() + kSize);
  std::vector<at::Tensor> theirs = random_tensors(kShapes, start);
  const auto optimizer = make_optimizer(config, layout);
  for (int step = 1; step <= kSteps; ++step) {
    const at::Tensor gradient = random_tensor(static_cast<uint32_t>(step));
    const std::vector<at::Tensor> g = random_tensors(kShapes, gradient);
    for (size_t i = 0; i < theirs.size(); ++i) update(i, theirs[i], g[i], step);
    optimizer->step(ours, {gradient.data_ptr<float>(), kSize}, config.lr);
  }
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : theirs) flat.push_back(tensor.flatten().to(torch::kFloat));
  EXPECT_LT(worst_difference(ours, at::cat(flat)), 1e-5);
}

TEST(AgainstTorch, LambFollowsItsPaper) {
  OptimizerConfig config = config_of("lamb", 0.01, 0.1);
  std::vector<at::Tensor> m(kShapes.size()), v(kShapes.size());
  compare(config, [&](size_t i, at::Tensor& x, const at::Tensor& g, int step) {
    m[i] = step == 1 ? 0.1 * g : 0.9 * m[i] + 0.1 * g;
    v[i] = step == 1 ? 0.001 * g * g : 0.999 * v[i] + 0.001 * g * g;
    const at::Tensor u = m[i] / (1 - std::pow(0.9, step)) /
                             ((v[i] / (1 - std::pow(0.999, step))).sqrt() + 1e-8) +
                         0.1 * x;
    x = x - 0.01 * (x.norm() / u.norm()) * u;
  });
}

TEST(AgainstTorch, ShampooFollowsItsPaper) {
  OptimizerConfig config = config_of("shampoo", 0.05);
  auto& rule = config.rule.get<ShampooRule>();
  rule.eps = 1e-3;
  rule.root_every = 3;
  rule.graft = false;
  std::vector<std::vector<at::Tensor>> moments(kShapes.size()), roots(kShapes.size());
  compare(config, [&](size_t t, at::Tensor& x, const at::Tensor& g, int step) {
    const int64_t order = g.dim();
    if (step == 1)
      for (int64_t i = 0; i < order; ++i)
        moments[t].push_back(rule.eps * at::eye(g.size(i), torch::kDouble));
    at::Tensor turned = g;
    for (int64_t i = 0; i < order; ++i) {
      const auto at_i = static_cast<size_t>(i);
      std::vector<int64_t> others;
      for (int64_t j = 0; j < order; ++j)
        if (j != i) others.push_back(j);
      moments[t][at_i] = moments[t][at_i] + at::tensordot(g, g, others, others);
      if (step % 3 == 1) {
        const auto [values, vectors] = at::linalg_eigh(moments[t][at_i]);
        roots[t].resize(static_cast<size_t>(order));
        roots[t][at_i] = at::matmul(vectors * values.pow(-0.5 / static_cast<double>(order)),
                                    vectors.transpose(0, 1));
      }
      turned = at::tensordot(roots[t][at_i], turned, {1}, {i}).movedim(0, i);
    }
    x = x - 0.05 * turned;
  });
}

}  // namespace
}  // namespace tutti
