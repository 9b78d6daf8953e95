// The pieces of the parameter server by themselves: shards, hands, messages, rules, evaluations.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/dealer.h"
#include "strategies/parameter_server/entry.h"
#include "strategies/parameter_server/layout.h"
#include "strategies/shared_evaluation.h"
#include "tests/models/model_of.h"
#include "tests/support/thorough.h"

namespace tutti::parameter_server {
namespace {

Architecture lenet() { return make_architecture(model_of("lenet"), {1, 28, 28}, 10); }

TEST(Shards, CoverAllParametersInOrder) {
  const Architecture architecture = lenet();
  for (const ShardKind by : {ShardKind::kBytes, ShardKind::kLayers})
    for (const size_t servers : {1u, 2u, 3u, 5u, 16u}) {
      const auto shards = make_shards(architecture, servers, by);
      ASSERT_EQ(shards.size(), servers);
      size_t end = 0;
      for (const Range shard : shards) {
        EXPECT_EQ(shard.begin, end);
        end = shard.end;
      }
      EXPECT_EQ(end, architecture.parameter_count);
    }
}

TEST(Shards, AreBalancedOrKeepLayersWhole) {
  const Architecture architecture = lenet();
  for (const Range shard : make_shards(architecture, 3, ShardKind::kBytes))
    EXPECT_NEAR(static_cast<double>(shard.size()),
                static_cast<double>(architecture.parameter_count) / 3, 1);
  std::set<size_t> borders;
  size_t largest_parameter = 0;
  for (const Parameter& parameter : architecture.parameters) {
    borders.insert(parameter.range.end);
    largest_parameter = std::max(largest_parameter, parameter.range.size());
  }
  size_t largest_shard = 0;
  for (const Range shard : make_shards(architecture, 4, ShardKind::kLayers)) {
    EXPECT_TRUE(borders.count(shard.end));
    largest_shard = std::max(largest_shard, shard.size());
  }
  // One layer has most of LeNet: nothing better is possible.
  EXPECT_EQ(largest_shard, largest_parameter);
}

TEST(Shards, PiecesAreTheShardInTheOrderOfTheBackwardPass) {
  const Architecture architecture = lenet();
  for (const Range shard : make_shards(architecture, 3, ShardKind::kBytes)) {
    size_t end = shard.end;
    for (const Range piece : pieces_of(architecture, shard)) {
      EXPECT_EQ(piece.end, end);
      end = piece.begin;
    }
    EXPECT_EQ(end, shard.begin);
  }
}

Timetable timetable(int64_t samples, int64_t batch, int64_t epochs, int64_t max_steps = 0) {
  TaskConfig task;
  task.global_batch = batch;
  task.epochs = epochs;
  task.max_steps = max_steps;
  return {task, OptimizerConfig{}, static_cast<size_t>(samples)};
}

using Cell = std::tuple<int, int, int>;  // epoch, step, part

TEST(Dealer, DealsEveryPartOfEveryStepOnce) {
  for (const int64_t pull_every : {1, 4})
    for (const bool own : {false, true}) {
      const Timetable table = timetable(100, 12, 3);
      Dealer dealer(table, 5, pull_every, own);
      std::map<Cell, int> dealt;
      for (int worker = 0; auto hand = dealer.draw(worker, false); worker = (worker + 1) % 5)
        for (int i = 0; i < hand->steps; ++i) ++dealt[{hand->epoch, hand->step + i, hand->part}];
      EXPECT_EQ(dealt.size(), 3u * 9 * 5);
      for (const auto& [cell, times] : dealt) EXPECT_EQ(times, 1);
    }
}

TEST(Dealer, StopsAfterMaxStepsInAnyEpoch) {
  const Timetable table = timetable(100, 10, 5, 13);
  Dealer dealer(table, 2, 1, false);
  int hands = 0;
  while (dealer.draw(0, false)) ++hands;
  EXPECT_EQ(hands, 26);
}

// Code that looks at every epoch would not end here.
TEST(Dealer, LooksAtNoMoreEpochsThanItDeals) {
  constexpr int64_t kEndless = 2'000'000'000;
  for (const int64_t pull_every : {1, 3}) {
    const Timetable stopped = timetable(100, 10, kEndless, 13);
    Dealer dealer(stopped, 2, pull_every, false);
    int64_t steps = 0;
    while (const auto hand = dealer.draw(0, false)) steps += hand->steps;
    EXPECT_EQ(steps, 26);
    const Timetable endless = timetable(100, 10, kEndless);
    EXPECT_EQ(Dealer(endless, 2, pull_every, false).draw(0, false)->steps, pull_every);
  }
}

// Workers that are slow, dropped or lost at random: each hand is accepted once in its own epoch.
TEST(Dealer, LosesNothingAndAcceptsNothingTwice) {
  for (uint64_t seed = 1; seed <= seeds(50, 1000); ++seed) {
    Random random(seed, Stream::kTest);
    const Timetable table = timetable(64, 16, 2);
    const int workers = 4;
    Dealer dealer(table, workers, 1, false);
    std::vector<std::optional<Hand>> computing(workers);
    std::map<Cell, int> accepted;
    int lost = 0, epoch = 0;
    for (int guard = 0; guard < 10000; ++guard) {
      const int worker = static_cast<int>(random.below(workers));
      if (worker < lost) continue;
      auto& hand = computing[static_cast<size_t>(worker)];
      if (!hand) {
        hand = dealer.draw(worker, true);
        if (!hand) break;  // everything was accepted
        EXPECT_GE(hand->epoch, epoch);
        epoch = hand->epoch;
        continue;
      }
      const uint64_t fate = random.below(20);
      if (fate == 0 && lost < 2 && worker == lost) {
        dealer.lose(lost++);
      } else if (fate < 6) {
        dealer.drop(worker, *hand);
      } else if (dealer.accept(worker, *hand, 1)) {
        ++accepted[{hand->epoch, hand->step, hand->part}];
      }
      hand.reset();
    }
    EXPECT_EQ(accepted.size(), 2u * 4 * workers) << "seed " << seed;
    for (const auto& [cell, times] : accepted) EXPECT_EQ(times, 1) << "seed " << seed;
  }
}

TEST(Dealer, CutsARoundForThoseWhoAreThere) {
  const Timetable table = timetable(100, 50, 1);
  Dealer dealer(table, 4, 1, false);
  ASSERT_TRUE(dealer.deal_round({0, 2, 3}));
  const auto hand = dealer.of_round(2);
  ASSERT_TRUE(hand);
  EXPECT_EQ(hand->part, 1);
  EXPECT_EQ(hand->parts, 3);
  EXPECT_FALSE(dealer.of_round(2));
  EXPECT_FALSE(dealer.of_round(1));
  EXPECT_TRUE(dealer.deal_round({0}));
  EXPECT_FALSE(dealer.deal_round({0}));
}

TEST(Evaluator, GivesTheShareOfALostWorkerToAnother) {
  Evaluator evaluator;
  evaluator.begin(64 * 10, 3, false, {});
  const auto a = evaluator.take(0, false), b = evaluator.take(1, false);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(evaluator.take(0, false));  // worker 2 has not had one
  evaluator.lose(1);
  const auto again = evaluator.take(0, false), c = evaluator.take(2, false);
  ASSERT_TRUE(again && c);
  EXPECT_EQ(again->begin, b->begin);
  EXPECT_FALSE(evaluator.take(0, true));
  const auto share = [](const EvaluationTask& task, int64_t correct) {
    EvaluationSums sums;
    sums.correct.value = correct;
    sums.loss.value = -correct;
    return share_of(task, sums);
  };
  EXPECT_FALSE(evaluator.add(1, share(*b, 5)));  // it is not its any more
  EXPECT_TRUE(evaluator.add(0, share(*a, 10)));
  EXPECT_TRUE(evaluator.add(0, share(*again, 20)));
  EXPECT_FALSE(evaluator.complete());
  EXPECT_TRUE(evaluator.add(2, share(*c, 30)));
  const auto sums = evaluator.complete();
  ASSERT_TRUE(sums);
  EXPECT_EQ(static_cast<int64_t>(sums->correct.value), 60);
  EXPECT_EQ(static_cast<int64_t>(sums->loss.value), -60);
  EXPECT_FALSE(evaluator.active());
}

const RequestLimits kLimits{.workers = 4, .coordinator = 4, .version = 100};

Request sensible_push() {
  Request request;
  request.flags = Request::kPush | Request::kPull;
  request.sequence = 8;
  request.version = 99;
  request.hand = {0, 3, 1, 2, 4};
  request.steps = 1;
  request.samples = 16;
  return request;
}

TEST(Messages, ASensibleRequestIsTaken) {
  EXPECT_EQ(fault_of(sensible_push(), sizeof(Request), 2, kLimits), "");
}

TEST(Messages, WhatCannotBeMeantIsNamed) {
  const auto fault = [](auto change, Rank from = 2, size_t bytes = sizeof(Request)) {
    Request request = sensible_push();
    change(request);
    return fault_of(request, bytes, from, kLimits);
  };
  EXPECT_NE(fault([](Request&) {}, 2, sizeof(Request) - 1), "");
  EXPECT_NE(fault([](Request&) {}, 5), "");
  EXPECT_NE(fault([](Request& r) { r.magic = 0; }), "");
  EXPECT_NE(fault([](Request& r) { r.flags |= 1u << 30; }), "");
  EXPECT_NE(fault([](Request& r) { r.flags = 0; }), "");
  EXPECT_NE(fault([](Request& r) { r.flags = Request::kDecision; }), "");
  EXPECT_EQ(fault([](Request& r) { r.flags = Request::kDecision; }, 4), "");
  EXPECT_NE(fault([](Request& r) { r.version = 101; }), "");
  EXPECT_NE(fault([](Request& r) { r.version = -1; }), "");
  EXPECT_NE(fault([](Request& r) { r.bound = -1; }), "");
  EXPECT_NE(fault([](Request& r) { r.hand.parts = 5; }), "");
  EXPECT_NE(fault([](Request& r) { r.hand.part = 4; }), "");
  EXPECT_NE(fault([](Request& r) { r.hand.steps = 0; }), "");
  EXPECT_NE(fault([](Request& r) { r.steps = 0; }), "");
  EXPECT_NE(fault([](Request& r) { r.samples = -1; }), "");
  EXPECT_NE(fault([](Request& r) { r.occupancy = NAN; }), "");
  EXPECT_NE(fault([](Request& r) { r.shard = 1; }), "");
  EXPECT_NE(fault([](Request& r) { r.shard = -1; }), "");
  EXPECT_NE(fault([](Request&) {}, 2, sizeof(Request) + sizeof(Decided)), "");
  const auto decide = [](Request& r) { r.flags = Request::kDecision, r.count = 1; };
  EXPECT_NE(fault(decide, 4), "");
  EXPECT_EQ(fault(decide, 4, sizeof(Request) + sizeof(Decided)), "");
  EXPECT_NE(fault(decide, 5, sizeof(Request) + sizeof(Decided)), "");
  EXPECT_NE(fault([](Request& r) { r.read_s = std::numeric_limits<double>::infinity(); }), "");
}

// Whatever bytes come: what is taken is within the limits that the server relies on.
TEST(Messages, NoBytesGetBeyondTheLimits) {
  Random random(7, Stream::kTest);
  int taken = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    Request request = sensible_push();
    std::array<std::byte, sizeof(Request)> bytes;
    std::memcpy(bytes.data(), &request, sizeof(Request));
    const uint64_t changes = 1 + random.below(8);
    for (uint64_t i = 0; i < changes; ++i)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    std::memcpy(&request, bytes.data(), sizeof(Request));
    const Rank from = static_cast<Rank>(random.below(6));
    if (!fault_of(request, sizeof(Request), from, kLimits).empty()) continue;
    ++taken;
    EXPECT_TRUE(request.count >= 0 || from != 4);
    if (!(request.flags & Request::kPush)) continue;
    EXPECT_TRUE(from >= 0 && from < 4);
    EXPECT_TRUE(request.version >= 0 && request.version <= 100);
    EXPECT_TRUE(request.hand.parts >= 1 && request.hand.parts <= 4);
    EXPECT_TRUE(request.hand.part >= 0 && request.hand.part < 4);
    EXPECT_TRUE(request.hand.epoch >= 0 && request.hand.step >= 0 && request.hand.steps >= 1);
  }
  EXPECT_GT(taken, 1000);  // or the test shows nothing
}

TEST(Shards, OptimizersThatNeedTensorsGetThemWhole) {
  const Architecture architecture = lenet();
  Config config;
  config.servers = 3;
  OptimizerConfig optimizer;
  EXPECT_EQ(make_shards(architecture, config, optimizer),
            make_shards(architecture, 3, ShardKind::kBytes));
  for (const char* kind : {"lamb", "shampoo"}) {
    optimizer = OptimizerConfig(kind);
    EXPECT_EQ(make_shards(architecture, config, optimizer),
              make_shards(architecture, 3, ShardKind::kLayers));
    config.shards = ShardKind::kBytes;
    EXPECT_THROW(validate(config, optimizer), ConfigError);
    config.shards = ShardKind::kAuto;
  }
}

TEST(ParameterLayout, TellsOptimizersTheTensorsAsTheyLieInMemory) {
  const Architecture architecture = lenet();
  const Layout all = layout_of(architecture);
  EXPECT_EQ(all.size, architecture.parameter_count);
  ASSERT_EQ(all.tensors.size(), architecture.parameters.size());
  EXPECT_EQ(all.tensors[2].shape, (std::vector<int64_t>{50, 5, 5, 20}));  // conv2.weight
  const Range range{architecture.parameters[2].range.begin, architecture.parameters[4].range.end};
  const Layout part = layout_of(architecture, range);
  ASSERT_EQ(part.tensors.size(), 3u);
  EXPECT_EQ(part.tensors[0].range.begin, 0u);
  EXPECT_EQ(part.tensors[0].shape, all.tensors[2].shape);
  EXPECT_EQ(part.tensors[2].range.end, part.size);
  const Layout cut = layout_of(architecture, {range.begin + 1, range.end});
  EXPECT_EQ(cut.tensors[0].shape.size(), 1u);
}

const EntryLimits kChainLimits{
    .workers = 4, .shards = 2, .elements = 10, .first_server = 4, .servers = 2};

TEST(Messages, NoBytesOfAnEntryGetBeyondTheLimits) {
  Entry sensible;
  sensible.kind = Entry::kRequest;
  sensible.worker = 2;
  sensible.request = sensible_push();
  sensible.elements = 10;
  sensible.updated = 1;
  EXPECT_EQ(fault_of(sensible, sizeof(Entry), kChainLimits), "");
  EXPECT_NE(fault_of(sensible, sizeof(Entry) - 1, kChainLimits), "");
  EXPECT_NE(fault_of(sensible, sizeof(Entry) + 1, kChainLimits), "");
  Random random(8, Stream::kTest);
  int taken = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    Entry entry = sensible;
    std::array<std::byte, sizeof(Entry)> bytes;
    std::memcpy(bytes.data(), &entry, sizeof(Entry));
    const uint64_t changes = 1 + random.below(8);
    for (uint64_t i = 0; i < changes; ++i)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    std::memcpy(&entry, bytes.data(), sizeof(Entry));
    if (!fault_of(entry, sizeof(Entry), kChainLimits).empty()) continue;
    ++taken;
    EXPECT_TRUE(entry.worker >= 0 && entry.worker < 4);
    EXPECT_TRUE(entry.shard >= 0 && entry.shard < 2);
    EXPECT_TRUE(entry.kind == Entry::kState || entry.elements == 0 || entry.elements == 10);
    EXPECT_LE(entry.count, static_cast<uint32_t>(kMostMembers));
    for (const Member& member : entry.order().members)
      EXPECT_TRUE(member.rank == 4 || member.rank == 5);
    EXPECT_TRUE(entry.request.count >= 0 && entry.request.count <= 4);
  }
  EXPECT_GT(taken, 1000);
}

TEST(Messages, DecisionsNameWorkersAndHandsThatThereAre) {
  const Decided good{{0, 3, 1, 2, 4}, 3};
  EXPECT_EQ(fault_of(std::vector{good}, 4), "");
  Decided nobody = good;
  nobody.worker = 4;
  EXPECT_NE(fault_of(std::vector{good, nobody}, 4), "");
  Decided nothing = good;
  nothing.hand.part = -1;
  EXPECT_NE(fault_of(std::vector{nothing}, 4), "");
}

}  // namespace
}  // namespace tutti::parameter_server
