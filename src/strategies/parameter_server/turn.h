// What the state machine of a shard is given, and what it answers: an input and its outputs.
//
// Both name memory and carry none. A gradient is named by its worker and the request that pushed
// it; in which slot or window it lies is known to whoever carries out the outputs. These are
// carried out in their order, so that a reply sends the parameters as they were when it was
// decided on.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/arithmetic.h"
#include "strategies/parameter_server/config.h"
#include "strategies/parameter_server/entry.h"
#include "strategies/recorder.h"

namespace tutti::parameter_server {

// What all members of a shard's chain know alike before the first input.
struct StateSettings {
  Config config = {};
  TaskConfig task = TaskConfig();
  OptimizerConfig optimizer = OptimizerConfig();
  int shard = 0;
  int workers = 1;
  size_t elements = 0;                  // parameters of the shard
  size_t row_width = 0;                 // of a sparse model; 0: a dense one
  size_t training = 0, validation = 0;  // samples
  bool classification = true;
  Arithmetic arithmetic{};  // where none is done evaluations measure nothing
  double started_s = 0;

  bool coordinates() const { return shard == 0; }
  bool sparse() const { return row_width > 0; }
};

struct GradientName {
  int worker = 0;
  uint64_t sequence = 0;  // of the request that pushed it
  friend bool operator==(const GradientName&, const GradientName&) = default;
};

struct Input {
  const Entry& entry;
  std::span<const Decided> decided = {};
  double now_s = 0;
  // The head of the chain has executed it before: `entry.updated` tells what it did then.
  bool replayed = false;
  // Gradients that the head before had gathered, and that this head does not have.
  std::span<const GradientName> absent = {};
  int64_t rows = 0;  // sparse: that were made so far
};

namespace output {

// An optimizer step with the sum of these gradients, in this order, times `factor`.
struct Update {
  std::vector<GradientName> gradients;
  double factor = 1, rate = 0;
};
// An optimizer step that makes the gradient part of the mean of its clock (clock_means.h).
struct Revise {
  GradientName gradient;
  int64_t clock = 0;
  int32_t parts = 1;
  double rate = 0;
  int64_t oldest = 0;  // clocks before this one get no more gradients
};
// For the record of the head: how old a gradient was that became part of an update.
struct Applied {
  int64_t round = 0;
  double staleness = 0;
  double read_s = 0;
};
// Nobody needs this gradient any more.
struct Discard {
  GradientName gradient;
};
// What lies in the window of this worker is about to be overwritten: it has to be copied first.
struct Secure {
  int worker = 0;
};
// The gradient is a list of keys: those that the pull of its worker asks for.
struct TakeKeys {
  GradientName keys;
};
// A reply, and the parameters that go with it.
struct Send {
  enum Source { kNothing, kCurrent, kKept };
  int worker = 0;
  uint32_t flags = 0;  // of the pull
  Reply reply;
  Source source = kNothing;
};
// The current parameters are set aside for an evaluation.
struct Keep {};
// It is time for a snapshot, if snapshots are kept.
struct Snapshot {
  int64_t version = 0, samples = 0, steps = 0;
  std::vector<int64_t> coordinator;
};
struct Count {
  const char* name;
  int64_t times = 1;
};
struct Measured {
  EvaluationRow row;
};
// What this worker has begun to send is not awaited any more.
struct Abandon {
  int worker = 0;
};
// This worker is a new one: nothing is known of it.
struct Welcome {
  int worker = 0;
};
struct Warn {
  std::string text;
};

}  // namespace output

using Output =
    std::variant<output::Update, output::Revise, output::Applied, output::Discard, output::Secure,
                 output::TakeKeys, output::Send, output::Keep, output::Snapshot, output::Count,
                 output::Measured, output::Abandon, output::Welcome, output::Warn>;

// One execution: its input and what it has brought about so far.
struct Turn {
  const Input& input;
  std::vector<Output> outputs = {};
  int updates = 0;
  bool changed = true;  // since those who wait were looked at

  template <class T>
  void put(T output) {
    outputs.emplace_back(std::move(output));
  }
  void count(const char* name, int64_t times = 1) { put(output::Count{name, times}); }
};

}  // namespace tutti::parameter_server
