// The state machine of a shard by itself: equal inputs give equal states and outputs, and a state
// that was written down goes on as if nothing had happened.
#include <gtest/gtest.h>

#include <array>

#include "core/random.h"
#include "tests/strategies/parameter_server/shard_world.h"
#include "tests/support/thorough.h"

namespace tutti::parameter_server {
namespace {

constexpr std::array kAllRules = {"bsp", "asp", "ssp", "backup", "adaptive", "waiting"};

struct InWords {
  std::string operator()(const output::Update& update) const {
    std::string words = fmt::format("update {} {}", update.factor, update.rate);
    for (const GradientName& name : update.gradients)
      words += fmt::format(" {}.{}", name.worker, name.sequence);
    return words;
  }
  std::string operator()(const output::Send& send) const {
    const Reply& reply = send.reply;
    return fmt::format("send {} {} {} {} {} {} {} {} {}", send.worker, send.flags, reply.kind,
                       reply.sequence, reply.version, reply.accounted, reply.oldest,
                       reply.elements, static_cast<int>(send.source));
  }
  std::string operator()(const output::Discard& discard) const {
    return fmt::format("discard {}.{}", discard.gradient.worker, discard.gradient.sequence);
  }
  std::string operator()(const output::Snapshot& due) const {
    return fmt::format("snapshot {} {} {}", due.version, due.samples,
                       fmt::join(due.coordinator, " "));
  }
  std::string operator()(const output::Count& count) const { return count.name; }
  std::string operator()(const output::Warn& warning) const { return warning.text; }
  std::string operator()(const output::Keep&) const { return "keep"; }
  template <class T>
  std::string operator()(const T&) const {
    return typeid(T).name();
  }
};

std::string in_words(const std::vector<Output>& outputs) {
  std::string words;
  for (const Output& output : outputs) words += std::visit(InWords{}, output) + "\n";
  return words;
}

// What is left of a history from each of its points on, executed by a state that was written down
// there and read back.
TEST(ShardState, GoesOnFromAnyPointAsIfNothingHadHappened) {
  for (uint64_t seed = 0; seed < seeds(60, 1000); ++seed) {
    Random random(seed, Stream::kTest);
    WorldSettings settings;
    settings.consistency = kAllRules[seed % kAllRules.size()];
    settings.keeps_inputs = true;
    settings.validation = seed % 2 ? 100 : 0;
    ShardWorld world(settings);
    const uint64_t lost_at = random.below(150);
    for (uint64_t now = 0;; ++now) {
      if (now == lost_at)
        world.happen({Event::kLoseServer, static_cast<int>(random.below(2)), 0});
      const std::vector<Event> events = world.events();
      if (events.empty()) break;
      world.happen(events[random.below(events.size())]);
    }
    ASSERT_EQ(world.broken_at_the_end(), "") << seed;
    for (int shard = 0; shard < settings.shards; ++shard) {
      const std::vector<KeptInput>& inputs = world.inputs(shard);
      const auto execute = [&](ShardState& state, size_t i) {
        return in_words(state.apply(
            {.entry = inputs[i].entry, .decided = inputs[i].decided, .replayed = true}));
      };
      ShardState whole(state_settings(settings, shard));
      std::vector<std::vector<std::byte>> states = {bytes_of(whole)};
      std::vector<std::string> outputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        outputs.push_back(execute(whole, i));
        states.push_back(bytes_of(whole));
      }
      EXPECT_GT(inputs.size(), 5u);
      for (size_t point = 0; point < inputs.size(); ++point) {
        ShardState later(state_settings(settings, shard));
        Archive archive(states[point]);
        later.archive(archive);
        EXPECT_TRUE(archive.exhausted());
        for (size_t i = point; i < inputs.size(); ++i) {
          ASSERT_EQ(execute(later, i), outputs[i]) << seed << " " << point << " " << i;
          ASSERT_EQ(bytes_of(later), states[i + 1]) << seed << " " << point << " " << i;
        }
      }
    }
  }
}

// Anything that a server lets through, in any order. Hostile workers are expelled, and nothing else
// goes wrong.
Entry drawn_entry(Random& random, const ShardState& state, uint64_t index) {
  constexpr std::array kKinds = {Entry::kRequest,   Entry::kRequest, Entry::kRequest,
                                 Entry::kRequest,   Entry::kRequest, Entry::kRequest,
                                 Entry::kLost,      Entry::kJoined,  Entry::kExpelled,
                                 Entry::kDelivered, Entry::kBulletin};
  constexpr std::array<uint32_t, 8> kFlags = {
      Request::kPull,
      Request::kPush,
      Request::kPush | Request::kPull,
      Request::kPull | Request::kHeaderOnly,
      Request::kPull | Request::kSnapshot,
      Request::kPull | Request::kFinal,
      Request::kPull | Request::kHeaderOnly | Request::kEvaluated,
      Request::kGoodbye | Request::kPull | Request::kHeaderOnly};
  const auto below = [&](int64_t limit) {
    return static_cast<int32_t>(random.below(static_cast<uint64_t>(limit)));
  };
  const int workers = state.workers().size();
  Entry entry{.kind = kKinds[random.below(kKinds.size())], .worker = below(workers)};
  entry.index = index;
  entry.incarnation = static_cast<uint32_t>(index);
  Request& request = entry.request;
  if (entry.kind == Entry::kBulletin) {
    request.flags = random.below(2) ? Request::kKeep : Request::kDecision;
    request.version = below(state.versions().version() + 3);
    request.share.id = below(4);
    return entry;
  }
  request.flags = kFlags[random.below(kFlags.size())];
  request.sequence = state.workers()[entry.worker].executed + 1;
  request.clock = state.workers()[entry.worker].clock;
  request.version = below(state.versions().version() + 1);
  request.wanted = below(state.versions().version() + 3);
  request.occupancy = random.uniform();
  request.steps = 1;
  request.samples = below(9);
  request.hand = {below(2), below(2), 1, below(workers), workers};
  return entry;
}

TEST(ShardState, IsAFunctionOfItsInputs) {
  for (uint64_t seed = 0; seed < seeds(300, 20'000); ++seed) {
    Random random(seed, Stream::kTest, 1);
    WorldSettings settings;
    settings.consistency = kAllRules[seed % kAllRules.size()];
    settings.validation = 200;
    const int shard = static_cast<int>(random.below(2));
    ShardState head(state_settings(settings, shard)), same(state_settings(settings, shard)),
        copy(state_settings(settings, shard));
    for (uint64_t index = 1; index < 100; ++index) {
      Entry entry = drawn_entry(random, head, index);
      std::vector<Decided> decided(random.below(3));
      for (Decided& one : decided)
        one = {{0, 0, 1, static_cast<int32_t>(random.below(3)), 3},
               static_cast<int32_t>(random.below(3))};
      const std::vector<Output> outputs = head.apply({.entry = entry, .decided = decided});
      ASSERT_EQ(in_words(same.apply({.entry = entry, .decided = decided})), in_words(outputs))
          << seed;
      for (const Output& output : outputs)
        if (std::holds_alternative<output::Update>(output)) entry.updated = 1;
      ASSERT_EQ(in_words(copy.apply({.entry = entry, .decided = decided, .replayed = true})),
                in_words(outputs))
          << seed;
      ASSERT_EQ(bytes_of(head), bytes_of(same)) << seed;
      ASSERT_EQ(bytes_of(head), bytes_of(copy)) << seed;
    }
  }
}

// A copy that does as the head did not is noticed at once.
TEST(ShardState, RefusesAnUpdateThatItsHeadDidNotMake) {
  WorldSettings settings;
  settings.consistency = "asp";
  Entry push{.kind = Entry::kRequest, .index = 1};
  push.request.flags = Request::kPush;
  push.request.sequence = 1;
  push.request.hand = {0, 0, 1, 0, 3};
  ShardState copy(state_settings(settings, 1));
  EXPECT_THROW(copy.apply({.entry = push, .replayed = true}), Error);
}

}  // namespace
}  // namespace tutti::parameter_server
