// Two rounds of each algorithm against hand computations in double.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/strategies/federated_averaging/reference.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr size_t kClients = 3;
constexpr double kRate = 0.1;

const ClientSplitConfig kUnequal{.kind = ClientSplitKind::kQuantity, .alpha = 2.0};
const char* const kUnequalSplit = "strategy.split={kind=\"quantity\", alpha=2.0}";

// Local SGD from x: `steps` steps of the client from its step `before` on. `added` is what the
// algorithm adds to a gradient at y.
template <class F>
Vector local_steps(FederatedReference& reference, size_t client, int64_t before, int64_t steps,
                   const Vector& x, double momentum, const F& added) {
  Vector y = x, v(x.size());
  for (int64_t step = 0; step < steps; ++step) {
    const Vector g = reference.gradient(client, before + step, y), more = added(y);
    for (size_t k = 0; k < y.size(); ++k) {
      v[k] = momentum * v[k] - kRate * (g[k] + more[k]);
      y[k] += v[k];
    }
  }
  return y;
}

Vector nothing(const Vector& y) { return Vector(y.size()); }

// The average difference of all clients, weighted by their samples, after so many epochs each.
template <class F>
Vector average_difference(FederatedReference& reference, const Vector& x, int64_t round,
                          int64_t epochs, const F& added) {
  Vector mean(x.size());
  double all = 0;
  for (size_t i = 0; i < kClients; ++i) all += reference.samples(i);
  for (size_t i = 0; i < kClients; ++i) {
    const int64_t steps = epochs * reference.steps_per_epoch(i);
    const Vector y = local_steps(reference, i, round * steps, steps, x, 0, added);
    for (size_t k = 0; k < x.size(); ++k) mean[k] += reference.samples(i) / all * (y[k] - x[k]);
  }
  return mean;
}

TEST(FederatedAveraging, TwoRoundsByHand) {
  for (const char* fabric : {"virtual", "process"}) {
    const Settings settings = federated(
        {kUnequalSplit, "strategy.local_epochs=2", "cluster.fabric=" + std::string(fabric)});
    FederatedReference reference(settings, kUnequal, kClients, 8);
    Vector x = reference.initial();
    for (int64_t round = 0; round < 2; ++round) {
      const Vector difference = average_difference(reference, x, round, 2, nothing);
      for (size_t k = 0; k < x.size(); ++k) x[k] += difference[k];
    }
    expect_close(parameters_after(settings), x);
  }
}

TEST(FederatedAveraging, FedProxByHand) {
  const Settings settings =
      federated({kUnequalSplit, "strategy.local_epochs=2", "strategy.proximal=0.5"});
  FederatedReference reference(settings, kUnequal, kClients, 8);
  Vector x = reference.initial();
  for (int64_t round = 0; round < 2; ++round) {
    const auto pull = [&](const Vector& y) {
      Vector result(y.size());
      for (size_t k = 0; k < y.size(); ++k) result[k] = 0.5 * (y[k] - x[k]);
      return result;
    };
    const Vector difference = average_difference(reference, x, round, 2, pull);
    for (size_t k = 0; k < x.size(); ++k) x[k] += difference[k];
  }
  expect_close(parameters_after(settings), x);
}

// FedAvgM, FedAdagrad, FedAdam and FedYogi.
TEST(FederatedAveraging, ServerOptimizersByHand) {
  const double lr = 0.05, b2 = 0.99, eps = 0.001, momentum = 0.7;
  for (const std::string kind : {"sgd", "momentum", "adagrad", "adam", "yogi"}) {
    const double b1 = kind == "adagrad" ? 0 : 0.9;  // as published
    const Settings settings = federated({"strategy.server={kind=\"" + kind + "\", lr=0.05" +
                                         (kind == "momentum" ? ", momentum=0.7}" : "}")});
    FederatedReference reference(settings, {}, kClients, 8);
    Vector x = reference.initial(), m(x.size()), v(x.size(), eps * eps);
    for (int64_t round = 0; round < 2; ++round) {
      const Vector d = average_difference(reference, x, round, 1, nothing);
      for (size_t k = 0; k < x.size(); ++k) {
        const double square = d[k] * d[k];
        if (kind == "sgd") {
          x[k] += lr * d[k];
        } else if (kind == "momentum") {
          m[k] = momentum * m[k] + lr * d[k];
          x[k] += m[k];
        } else {
          m[k] = b1 * m[k] + (1 - b1) * d[k];
          if (kind == "adagrad") v[k] += square;
          if (kind == "adam") v[k] = b2 * v[k] + (1 - b2) * square;
          if (kind == "yogi") v[k] -= (1 - b2) * square * (v[k] > square ? 1 : -1);
          x[k] += lr * m[k] / (std::sqrt(v[k]) + eps);
        }
      }
    }
    SCOPED_TRACE(kind);
    expect_close(parameters_after(settings), x);
  }
}

// Clients of different sizes take different numbers of steps; each counts with its direction.
TEST(FederatedAveraging, FedNovaByHand) {
  for (const double momentum : {0.0, 0.6}) {
    const Settings settings =
        federated(Settings{kUnequalSplit, "strategy.algorithm=fednova", "strategy.local_epochs=2"} +
                  (momentum > 0 ? Settings{"optimizer.kind=momentum", "optimizer.momentum=0.6"}
                                : Settings{}));
    FederatedReference reference(settings, kUnequal, kClients, 8);
    Vector x = reference.initial();
    double all = 0;
    for (size_t i = 0; i < kClients; ++i) all += reference.samples(i);
    for (int64_t round = 0; round < 2; ++round) {
      Vector direction(x.size());
      double effective = 0;
      for (size_t i = 0; i < kClients; ++i) {
        const int64_t steps = 2 * reference.steps_per_epoch(i);
        const Vector y = local_steps(reference, i, round * steps, steps, x, momentum, nothing);
        // How much each gradient moves the parameters: 1 + rho + rho^2 + ... until the last step.
        double reach = 0;
        for (int64_t step = 0; step < steps; ++step)
          for (int64_t later = step; later < steps; ++later)
            reach += std::pow(momentum, static_cast<double>(later - step));
        const double share = reference.samples(i) / all;
        effective += share * reach;
        for (size_t k = 0; k < x.size(); ++k) direction[k] += share * (y[k] - x[k]) / reach;
      }
      for (size_t k = 0; k < x.size(); ++k) x[k] += effective * direction[k];
    }
    SCOPED_TRACE(momentum);
    expect_close(parameters_after(settings), x);
  }
}

// Option II, as published: y -= lr (g - c_i + c); c_i' = c_i - c + (x - y) / (K lr);
// x += mean of (y - x); c += mean over all clients of (c_i' - c_i). Both means are over clients, or
// both over samples.
void expect_scaffold(const std::string& weigh_by) {
  const Settings settings =
      federated({"strategy.algorithm=scaffold", "strategy.weigh_by=" + weigh_by, kUnequalSplit,
                 "strategy.local_steps=3", "task.max_steps=3"});
  FederatedReference reference(settings, kUnequal, kClients, 8);
  Vector x = reference.initial(), c(x.size());
  const size_t size = x.size();
  std::vector<Vector> own(kClients, Vector(size));
  double all = 0;
  for (size_t i = 0; i < kClients; ++i) all += reference.samples(i);
  const auto share = [&](size_t i) {
    return weigh_by == "clients" ? 1.0 / kClients : reference.samples(i) / all;
  };
  for (int64_t round = 0; round < 3; ++round) {
    Vector moved(size), changed(size);
    for (size_t i = 0; i < kClients; ++i) {
      Vector correction(size);
      for (size_t k = 0; k < size; ++k) correction[k] = c[k] - own[i][k];
      const Vector y =
          local_steps(reference, i, 3 * round, 3, x, 0, [&](const Vector&) { return correction; });
      for (size_t k = 0; k < size; ++k) {
        const double next = own[i][k] - c[k] + (x[k] - y[k]) / (3 * kRate);
        moved[k] += share(i) * (y[k] - x[k]);
        changed[k] += share(i) * (next - own[i][k]);
        own[i][k] = next;
      }
    }
    for (size_t k = 0; k < size; ++k) {
      x[k] += moved[k];
      c[k] += changed[k];
    }
  }
  expect_close(parameters_after(settings), x);
}

TEST(FederatedAveraging, ScaffoldByHandWithClientsAlike) { expect_scaffold("clients"); }
TEST(FederatedAveraging, ScaffoldByHandWithClientsBySamples) { expect_scaffold("samples"); }

// FedSGD: one gradient of all a client's samples is one step on the gradient of all samples.
TEST(FederatedAveraging, FedSgdIsGradientDescent) {
  const Settings settings = federated({"strategy.client_batch=1000", kUnequalSplit});
  FederatedReference reference(settings, kUnequal, kClients, 1000);
  Vector x = reference.initial();
  double all = 0;
  for (size_t i = 0; i < kClients; ++i) all += reference.samples(i);
  for (int64_t round = 0; round < 2; ++round) {
    Vector gradient(x.size());
    for (size_t i = 0; i < kClients; ++i) {
      const Vector g = reference.gradient(i, round, x);
      for (size_t k = 0; k < x.size(); ++k) gradient[k] += reference.samples(i) / all * g[k];
    }
    for (size_t k = 0; k < x.size(); ++k) x[k] -= kRate * gradient[k];
  }
  expect_close(parameters_after(settings), x);
}

TEST(FederatedAveraging, RefusesWhatContradicts) {
  for (const Settings& bad :
       {Settings{"strategy.quorum=4"}, Settings{"strategy.over_select=1.5"},
        Settings{"strategy.split=dirichlet"}, Settings{"strategy.clients=1000"},
        Settings{"strategy.algorithm=scaffold", "optimizer.kind=momentum"},
        Settings{"strategy.algorithm=scaffold", "optimizer.weight_decay=0.1"},
        Settings{"strategy.algorithm=fednova", "optimizer.kind=adam"},
        Settings{"strategy.algorithm=fednova", "strategy.proximal=0.1"},
        Settings{"optimizer.base_batch=16"}, Settings{"optimizer.schedule=grow_batch"},
        Settings{"task.deterministic=true", "strategy.deadline=\"1 s\""}})
    EXPECT_THROW(resolve(load_job("", federated(bad))), ConfigError) << bad.back();
  // Keys that would have no effect are not read.
  EXPECT_THROW(load_job("", federated({"strategy.local_steps=3", "strategy.local_epochs=2"})),
               ConfigError);
}

}  // namespace
}  // namespace tutti
