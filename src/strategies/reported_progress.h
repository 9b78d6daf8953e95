// How far the workers are that do not wait for each other, as one of them has heard.
//
// Every message carries on how many samples each worker has trained on and when, as far as its
// sender knows: so all learn of the end of training without anybody counting for them. What is
// known of a worker is old by the time it arrives, so a worker is taken to have gone on at its pace
// since; else all would train on for as long as the news of the end travels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

class ReportedProgress {
 public:
  ReportedProgress(size_t workers, size_t me, double now_s);

  void set_own_samples(int64_t samples, double now_s);
  // Of all, as far as is known: never more than there are.
  int64_t samples() const;
  // Of all by now, if the `living` have gone on at their pace since they were heard of, all but the
  // first of them, which measures for all meanwhile. A worker that was not heard of yet is taken to
  // be as far as this one.
  int64_t likely_samples(double now_s, const std::vector<bool>& living) const;
  void stop() { facts_.front() = 1; }
  bool stopped() const { return facts_.front() != 0; }

  // As messages carry it: numbers that only grow, so that of two reports the larger ones hold.
  std::span<const int64_t> facts() const { return facts_; }
  size_t bytes() const { return facts_.size() * sizeof(int64_t); }
  void write(std::span<std::byte> message) const;
  void learn(std::span<const std::byte> message);

 private:
  // Places in facts_, of a worker: how many samples, and how long after its own start.
  static size_t samples_of(size_t worker) { return 1 + worker; }
  size_t microseconds_of(size_t worker) const { return 1 + workers_ + worker; }

  size_t workers_, me_;
  double started_s_;
  std::vector<int64_t> facts_;  // whether to stop, the samples of each worker, and since when
};

}  // namespace tutti
