// Every optimizer against PyTorch's own, for 100 steps on random gradients at a constant rate.
#include <torch/torch.h>

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "optimizers/optimizer.h"

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
  OptimizerConfig config;
  config.kind = kind;
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
  torch::set_num_threads(1);
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

}  // namespace
}  // namespace tutti
