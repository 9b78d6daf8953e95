// What a worker reports of its time, which adaptive rules follow.
#include "strategies/parameter_server/occupancy.h"

#include <gtest/gtest.h>

namespace tutti::parameter_server {
namespace {

// A clock that is set by hand.
class SetClock : public Clock {
 public:
  double now() const override { return now_s; }
  void sleep(double) override {}
  void charge(const Work&) override {}
  void begin_step() override {}
  void begin_chunk() override {}
  double load() const override { return 0; }
  double busy_s() const override { return processor_s; }
  bool simulated() const override { return true; }
  Arithmetic arithmetic() const override { return Arithmetic(); }

  double now_s = 0, processor_s = 0;
};

// For ten seconds a worker is in a phase of computing, of which its processor works three.
double share_of(ConsistencyKind kind, Phase phase) {
  SetClock clock;
  Stopwatch watch(clock);
  Config config;
  config.consistency = kind;
  Occupancy occupancy(clock, watch, config);
  const PhaseScope scope(watch, phase);
  clock.now_s = 10;
  clock.processor_s = 3;
  return occupancy.measure();
}

TEST(Occupancy, AdaptiveFollowsTheProcessorWhateverThePhase) {
  EXPECT_DOUBLE_EQ(share_of(ConsistencyKind::kAdaptive, Phase::kCompute), 0.3);
  EXPECT_DOUBLE_EQ(share_of(ConsistencyKind::kAdaptive, Phase::kWait), 0.3);
}

TEST(Occupancy, OtherRulesFollowThePhasesEvenTheOneThatGoesOn) {
  EXPECT_DOUBLE_EQ(share_of(ConsistencyKind::kWaiting, Phase::kCompute), 1);
  EXPECT_DOUBLE_EQ(share_of(ConsistencyKind::kWaiting, Phase::kAggregate), 1);
  EXPECT_DOUBLE_EQ(share_of(ConsistencyKind::kWaiting, Phase::kWait), 0);
}

TEST(Occupancy, EachReportIsOfTheTimeSinceTheLast) {
  SetClock clock;
  Stopwatch watch(clock);
  Config config;
  config.consistency = ConsistencyKind::kAdaptive;
  Occupancy occupancy(clock, watch, config);
  clock.now_s = 10, clock.processor_s = 3;
  EXPECT_DOUBLE_EQ(occupancy.measure(), 0.3);
  EXPECT_DOUBLE_EQ(occupancy.measure(), -1);  // no time has passed
  clock.now_s = 12, clock.processor_s = 4;
  EXPECT_DOUBLE_EQ(occupancy.measure(), 0.5);
  clock.now_s = 13, clock.processor_s = 7;  // several threads
  EXPECT_DOUBLE_EQ(occupancy.measure(), 1);
}

}  // namespace
}  // namespace tutti::parameter_server
