// The workers of a server, and the conversation with them: each has one order at a time. One that
// sends nonsense is expelled and one that is lost is gone; what that means for a round is up to
// whoever hears of it.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/federated_averaging/aggregation.h"
#include "strategies/federated_averaging/messages.h"
#include "strategies/strategy.h"

namespace tutti::federated_averaging {

class Workforce {
 public:
  using Parameters = std::shared_ptr<Buffer<float>>;
  enum Standing { kAbsent, kIdle, kBusy, kDone, kGone };
  // What a worker did for the client in `place`, if it worked for the round under way.
  struct Work {
    std::optional<size_t> place;
    double ordered_s = 0;
  };
  // Who hears what workers say.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_update(const Work& work, const Report& report, size_t slot) = 0;
    virtual void on_dropped(const Work& work, const Report& report) = 0;
    virtual bool on_evaluated(Rank from, const EvaluationShare& share) = 0;  // false: nonsense
    virtual void on_diverged() = 0;
    virtual void on_gone(Rank rank, const Work& work) = 0;
  };
  // Updates of `size` values, or several such vectors, arrive in the aggregation's slots.
  Workforce(Context& context, size_t size, Aggregation& aggregation, Listener& listener);

  void listen();  // from now on reports are received
  // Waits for the next message of anybody, at most a little while and until `until_s`.
  void wait_for_news(double until_s);

  std::vector<Rank> idle() const;
  bool any(std::initializer_list<Standing> states) const;
  size_t count_present() const;
  void dismiss(Rank rank) { worker(rank).state = kDone; }  // nothing more is expected of it

  // With parameters it is an order that keeps the worker busy, otherwise only news.
  void order(Rank to, Order order, const Parameters& parameters = {}, Buffer<float> more = {});
  void assign(Rank rank, size_t place) { worker(rank).work.place = place; }
  void end_round();  // who is late works for nothing

 private:
  // An order that is on its way, with what follows it.
  struct Sent {
    Order order;
    Parameters parameters;  // as they were: the next round may begin while they travel
    Buffer<float> more;
    std::vector<Handle> handles;
  };
  struct Worker {
    Standing state = kAbsent;
    uint64_t sequence = 0;
    Order order;    // that it works on
    Report report;  // whose update is on its way
    Work work;
    std::optional<size_t> slot;  // where its update arrives
    size_t parts_left = 0;
    std::deque<Sent> sent;
  };
  void receive_report();
  void look_at_members();
  void handle(Rank from, const Report& report, size_t bytes);
  void receive_update(Rank from);
  void part_arrived(size_t index, const Completion& completion);
  void update_arrived(Rank from);
  void expel(Rank rank, const std::string& why);
  void remove(Rank rank);
  Worker& worker(Rank rank) { return workers_[static_cast<size_t>(rank)]; }

  Context& context_;
  Node& node_;
  size_t size_;
  Aggregation& aggregation_;
  Listener& listener_;
  std::vector<Worker> workers_;
  double silent_s_ = 0;  // time waited for anybody; a clock would also count time while stopped
  Report incoming_;
  std::vector<Handle> handles_;  // the receive from anybody, then parts of updates
  std::vector<Rank> owner_of_;   // of the same index
};

}  // namespace tutti::federated_averaging
