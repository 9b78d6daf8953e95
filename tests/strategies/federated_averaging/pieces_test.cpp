// The parts that need no cluster: sampling, rounds, sums, weights, control variates, messages.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "strategies/federated_averaging/aggregation.h"
#include "strategies/federated_averaging/client_training.h"
#include "strategies/federated_averaging/control_variates.h"
#include "strategies/federated_averaging/messages.h"
#include "strategies/federated_averaging/round.h"
#include "strategies/federated_averaging/sampling.h"
#include "strategies/federated_averaging/server_optimizer.h"

namespace tutti::federated_averaging {
namespace {

TEST(Sampling, DrawsTheFractionWithoutRepetitionAndAnotherOneInEveryRound) {
  Config config;
  config.fraction = 0.01;
  const Sampling sampling(config, 10000, 1);
  std::set<std::vector<int64_t>> rounds;
  std::set<int64_t> everybody;
  for (int64_t round = 0; round < 500; ++round) {
    const std::vector<int64_t> drawn = sampling.draw(round);
    EXPECT_EQ(drawn.size(), 100u);
    EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 100u);
    everybody.insert(drawn.begin(), drawn.end());
    rounds.insert(drawn);
    EXPECT_EQ(drawn, sampling.draw(round));
  }
  EXPECT_EQ(rounds.size(), 500u);
  // Each is left out with probability 0.99^500 = 0.7 %: 66 of them, deviation 8.
  EXPECT_NEAR(static_cast<double>(10000 - everybody.size()), 66, 45);
}

TEST(Sampling, OnlyAsksClientsThatAreOnline) {
  Config config;
  config.availability = {.kind = AvailabilityKind::kRandom, .share = 0.3, .period = 24};
  const Sampling random(config, 1000, 1);
  EXPECT_NEAR(static_cast<double>(random.draw(0).size()), 300, 75);  // five deviations
  for (const int64_t client : random.draw(7)) EXPECT_TRUE(random.online(7, client));
  config.availability = {.kind = AvailabilityKind::kDiurnal, .share = 0.25, .period = 24};
  const Sampling diurnal(config, 200, 1);
  for (int64_t client = 0; client < 200; ++client) {
    int online = 0, changes = 0;
    for (int64_t round = 0; round < 24; ++round) {
      online += diurnal.online(round, client) ? 1 : 0;
      changes += diurnal.online(round, client) != diurnal.online(round + 1, client) ? 1 : 0;
      EXPECT_EQ(diurnal.online(round, client), diurnal.online(round + 240, client));
    }
    EXPECT_EQ(online, 6);
    EXPECT_EQ(changes, 2);  // awake in one stretch
  }
}

TEST(Sampling, AShareOfTheClientsDropsOutSomewhereInItsWork) {
  Config config;
  config.dropout = 0.2;
  const Sampling sampling(config, 10000, 1);
  int gone = 0;
  for (int64_t client = 0; client < 10000; ++client) {
    const double stamina = sampling.stamina(3, client);
    EXPECT_GE(stamina, 0);
    EXPECT_LE(stamina, 1);
    gone += stamina < 1 ? 1 : 0;
  }
  EXPECT_NEAR(gone, 2000, 200);
  EXPECT_EQ(Sampling(Config{}, 10, 1).stamina(0, 0), 1);
}

TEST(Config, RoundsOfClientsAreNotOneMoreForARounding) {
  Config config;
  config.fraction = 0.01;
  EXPECT_EQ(wanted_clients(config, 10000), 100);
  EXPECT_EQ(wanted_clients(config, 10001), 101);
  EXPECT_EQ(wanted_clients(config, 3), 1);
  config.over_select = 1.3;
  EXPECT_EQ(asked_clients(config, 10000), 130);
}

Round three_clients(const Round::Limits& limits, bool largest_first = false) {
  return {0, {7, 8, 9}, {10, 30, 20}, limits, largest_first};
}

TEST(Round, DealsInTheOrderDrawnOrTheLargestFirst) {
  Round drawn = three_clients({.wanted = 3});
  for (const size_t place : {0u, 1u, 2u}) EXPECT_EQ(drawn.next(), place);
  EXPECT_EQ(drawn.next(), std::nullopt);
  Round sorted = three_clients({.wanted = 3}, true);
  for (const size_t place : {1u, 2u, 0u}) EXPECT_EQ(sorted.next(), place);
}

TEST(Round, ClosesAtItsTimeWithAQuorumAndGoesOnWithout) {
  Round round = three_clients({.wanted = 3, .quorum = 2, .closes_at_s = 5});
  round.next();
  round.next();
  round.next();
  round.answered();
  EXPECT_FALSE(round.over(4));
  EXPECT_FALSE(round.over(6));  // one answer of two
  round.answered();
  EXPECT_FALSE(round.over(4));
  EXPECT_TRUE(round.over(6));
  EXPECT_TRUE(round.counts());
  EXPECT_EQ(round.missing(), 1u);
}

TEST(Round, EndsWithoutAQuorumWhenEverybodyIsSettled) {
  Round round = three_clients({.wanted = 3, .quorum = 2});
  for (int i = 0; i < 3; ++i) round.next();
  round.answered();
  round.dropped();
  EXPECT_FALSE(round.over(1e9));
  round.dropped();
  EXPECT_TRUE(round.over(0));
  EXPECT_FALSE(round.counts());
}

TEST(Round, TakesTheFirstAnswersAndGivesALostClientToTheNextWorker) {
  Round round = three_clients({.wanted = 2});
  const size_t first = *round.next();
  round.next();
  round.put_back(first);
  EXPECT_EQ(round.next(), first);
  round.answered();
  EXPECT_FALSE(round.over(0));
  round.answered();
  EXPECT_TRUE(round.over(0));
  EXPECT_FALSE(round.begun(2));
}

Aggregation aggregation_of(size_t size) {
  return {size, 1, Arithmetic(), [](size_t, std::span<const float>) {}};
}

// The sum of 1e30, 1 and -1e30 is 0 in this order, and 1 in another.
TEST(Aggregation, IsTheSameBitsInWhateverOrderUpdatesArrive) {
  const float updates[] = {1e30f, 1, 0, -1e30f};
  for (const auto& order : {std::vector<size_t>{0, 1, 2, 3}, {3, 2, 0, 1}, {1, 3, 0, 2}}) {
    Aggregation aggregation = aggregation_of(1);
    aggregation.begin(4);
    for (const size_t place : order) {
      if (place == 2) {
        aggregation.leave_out(place);
        continue;
      }
      const size_t slot = aggregation.take_slot();
      aggregation.slot(slot)[0] = updates[place];
      aggregation.add(place, slot, {1, 1, 1, 1});
    }
    std::vector<float> mean{5};
    EXPECT_TRUE(aggregation.mean(mean));
    EXPECT_EQ(aggregation.added(), 3u);
    EXPECT_EQ(mean[0], 0);
  }
}

TEST(Aggregation, WeighsBySamples) {
  Aggregation aggregation = aggregation_of(2);
  aggregation.begin(2);
  for (const size_t place : {1u, 0u}) {
    const size_t slot = aggregation.take_slot();
    aggregation.slot(slot)[0] = place == 0 ? 3.0f : -1.0f;
    aggregation.slot(slot)[1] = place == 0 ? 8.0f : 0.0f;
    aggregation.add(place, slot, weight_of({}, OptimizerConfig(), place == 0 ? 10 : 30, 7));
  }
  std::vector<float> mean(2);
  EXPECT_TRUE(aggregation.mean(mean));
  EXPECT_EQ(mean, (std::vector<float>{0, 2}));
}

// SCAFFOLD as published: a client with three times the samples counts no more than another one.
TEST(Aggregation, WeighsClientsAlikeForScaffold) {
  for (const WeighBy by : {WeighBy::kClients, WeighBy::kSamples}) {
    Config config;
    config.algorithm = Algorithm::kScaffold;
    config.weigh_by = by;
    Aggregation aggregation(2, 2, Arithmetic(), [](size_t, std::span<const float>) {}, {{1, 2}});
    aggregation.begin(2);
    for (const size_t place : {0u, 1u}) {
      const size_t slot = aggregation.take_slot();
      aggregation.slot(slot)[0] = aggregation.slot(slot)[1] = place == 0 ? 3.0f : -1.0f;
      aggregation.add(place, slot, weight_of(config, OptimizerConfig(), place == 0 ? 10 : 30, 7));
    }
    std::vector<float> mean(2);
    EXPECT_TRUE(aggregation.mean(mean));
    EXPECT_EQ(mean[0], by == WeighBy::kClients ? 1.0f : 0.0f)
        << "(3 - 1) / 2, or (10 x 3 - 30) / 40";
    EXPECT_EQ(mean[1], 0.0f) << "running statistics are means over samples";
  }
}

TEST(Aggregation, KeepsOnlyWhatCameTooEarly) {
  Aggregation aggregation = aggregation_of(2);
  aggregation.begin(100);
  for (size_t place = 0; place < 100; ++place) {
    const size_t slot = aggregation.take_slot();
    aggregation.slot(slot)[0] = aggregation.slot(slot)[1] = 1;
    EXPECT_EQ(aggregation.add(place, slot, {1, 1, 1}), 1u);
  }
  EXPECT_EQ(aggregation.slots(), 1u);
}

TEST(Aggregation, SaysWhenThereIsNothingToAverageOrItIsNotFinite) {
  Aggregation aggregation = aggregation_of(1);
  aggregation.begin(1);
  std::vector<float> mean(1);
  EXPECT_FALSE(aggregation.mean(mean));
  const size_t slot = aggregation.take_slot();
  aggregation.slot(slot)[0] = std::numeric_limits<float>::infinity();
  aggregation.add(0, slot, {1, 1, 1, 1});
  EXPECT_FALSE(aggregation.mean(mean));
}

// a_i is the sum over the gradients of how much each moved the parameters, in units of the rate.
TEST(FedNova, ReachIsThatOfStepsThatAllSeeTheSameGradient) {
  for (const std::string kind : {"sgd", "momentum"}) {
    const OptimizerConfig config(kind);
    const auto optimizer = make_optimizer(config, 1);
    std::vector<float> x{0}, g{1};
    for (int64_t steps = 1; steps <= 20; ++steps) {
      optimizer->step(x, g, 0.5);
      EXPECT_NEAR(reach_of(config, steps), -x[0] / 0.5, 1e-4 * static_cast<double>(steps)) << kind;
    }
  }
}

TEST(ControlVariates, StayTheMeanOfThoseOfAllClients) {
  ControlVariates controls(2, Arithmetic());
  std::vector<float> correction(2);
  const std::vector<float> a{4, 8}, b{2, -2}, c{8, 0};
  controls.update(0, a, 0.25);
  controls.update(3, b, 0.25);
  controls.correction(0, correction);
  EXPECT_EQ(correction, (std::vector<float>{-4, -8}));  // c does not move within a round
  controls.close_round();
  EXPECT_EQ(controls.server()[0], 1.5);
  controls.update(0, c, 0.25);
  controls.close_round();
  EXPECT_EQ(controls.server()[0], 2.5);
  EXPECT_EQ(controls.server()[1], -0.5);
  controls.correction(1, correction);
  EXPECT_EQ(correction, (std::vector<float>{2.5, -0.5}));
}

TEST(ClientBatches, EveryPassSeesEverySampleInAnotherOrder) {
  const std::vector<uint32_t> samples{3, 1, 4, 15, 9, 2, 6};
  ClientBatches batches(samples, 3, 5, 1, true);
  ASSERT_EQ(batches.steps_per_epoch(), 3);
  std::set<std::vector<uint32_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<uint32_t> seen;
    for (int64_t step = 0; step < 3; ++step)
      for (const uint32_t sample : batches.at(3 * epoch + step)) seen.push_back(sample);
    orders.insert(seen);
    EXPECT_EQ(std::multiset<uint32_t>(seen.begin(), seen.end()),
              std::multiset<uint32_t>(samples.begin(), samples.end()));
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(ServerOptimizer, TwoStepsOfEachByHand) {
  const double lr = 0.5, b1 = 0.9, b2 = 0.99, eps = 1e-3;
  const double gradients[] = {0.2, -0.1};
  for (const ServerKind kind : {ServerKind::kAdagrad, ServerKind::kAdam, ServerKind::kYogi})
    for (const SecondMoments start : {SecondMoments::kPaper, SecondMoments::kZero}) {
      const bool from_zero = start == SecondMoments::kZero;
      const auto optimizer = make_server_optimizer(
          {.kind = kind, .beta1 = b1, .beta2 = b2, .eps = eps, .second_moments = start}, 1);
      std::vector<float> x{1};
      double expected = 1, m = 0, v = from_zero ? 0 : eps * eps;
      for (const double g : gradients) {
        const std::vector<float> gradient{static_cast<float>(g)};
        optimizer->step(x, gradient, lr);
        m = b1 * m + (1 - b1) * g;
        if (kind == ServerKind::kAdagrad) v = v + g * g;
        if (kind == ServerKind::kAdam) v = b2 * v + (1 - b2) * g * g;
        if (kind == ServerKind::kYogi) v = v - (1 - b2) * g * g * (v > g * g ? 1 : -1);
        expected -= lr * m / (std::sqrt(v) + eps);
        EXPECT_NEAR(x[0], expected, 1e-5) << word_of(kind) << from_zero;
      }
    }
}

TEST(Messages, OnlySensibleReportsAreBelieved) {
  Order order;
  order.kind = Order::kTrain;
  order.sequence = 4;
  order.round = 2;
  order.client = 17;
  Report report;
  report.kind = Report::kTrained;
  report.sequence = 4;
  report.round = 2;
  report.client = 17;
  report.steps = report.samples = 5;
  EXPECT_EQ(fault_of(report, sizeof(Report), order), "");
  EXPECT_NE(fault_of(report, sizeof(Report) - 1, order), "");
  const auto spoilt = [&](auto spoil) {
    Report bad = report;
    spoil(bad);
    return fault_of(bad, sizeof(Report), order);
  };
  EXPECT_NE(spoilt([](Report& r) { r.magic = 0; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.kind = Report::kEvaluated; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.kind = 99; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.sequence = 3; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.client = 18; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.round = 3; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.steps = 0; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.samples = -1; }), "");
  EXPECT_NE(spoilt([](Report& r) { r.loss = NAN; }), "");
}

TEST(Messages, OnlySensibleOrdersAreObeyed) {
  Order order;
  order.kind = Order::kTrain;
  order.sequence = 1;
  order.elements = 10;
  order.client = 3;
  const auto fault = [&](auto spoil) {
    Order bad = order;
    spoil(bad);
    return fault_of(bad, sizeof(Order), 1, 10, 4);
  };
  EXPECT_EQ(fault([](Order&) {}), "");
  EXPECT_NE(fault_of(order, 3, 1, 10, 4), "");
  EXPECT_NE(fault([](Order& o) { o.magic = 0; }), "");
  EXPECT_NE(fault([](Order& o) { o.kind = 0; }), "");
  EXPECT_NE(fault([](Order& o) { o.sequence = 2; }), "");
  EXPECT_NE(fault([](Order& o) { o.elements = 11; }), "");
  EXPECT_NE(fault([](Order& o) { o.client = 4; }), "");
  EXPECT_NE(fault([](Order& o) { o.steps_before = -1; }), "");
  EXPECT_NE(fault([](Order& o) { o.rate = NAN; }), "");
}

}  // namespace
}  // namespace tutti::federated_averaging
