// How flows share links, by the model of SimGrid's network (Casanova and Marchal, "A network model
// for simulation of grid application", 2002; Velho and Legrand, "Accuracy study and improvement of
// network simulation in the SimGrid framework", 2009), solved only where it changes.
//
// Rates are max-min fair: no flow can get more without taking it from one that has no more. A flow
// has a weight, because a longer round trip makes TCP slower, and its rate over its weight is its
// level. A link is a bottleneck when it is full and some of its flows could use more: these have
// the highest level of all its flows, which is called the level of the link. Every flow has the
// lowest level of the bottlenecks on its way. A solution in which that holds is the only one, so
// what a change does not reach can stay as it is.
//
// Flows of one bottleneck advance together: its progress grows by its level in every second, and a
// flow ends when the progress has reached the flow's end. A level that changes therefore changes
// neither these ends nor their order, and only the first of them is an event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tutti::simulation {

class SharedLinks {
 public:
  using Link = uint32_t;
  static constexpr size_t kMostLinks = 4;
  struct Route {
    std::array<Link, kMostLinks> links{};
    size_t length = 0;  // how many of them; 0: the flow moves at `bound`
    double latency_s = 0;
    double weight = 1;
    double bound = 0;  // bytes/s
  };

  Link add_link(double bandwidth);  // bytes/s

  // `id` is the caller's, of no flow that has not ended. Bytes move after the route's latency.
  void start(uint64_t id, const Route& route, double bytes, double now_s);
  double stop(uint64_t id, double now_s);  // returns the bytes that are left

  bool carries(uint64_t id) const { return flows_.contains(id); }  // it has not ended
  bool empty() const { return flows_.empty(); }
  // When the next flow begins to move or ends, if nothing else happens; infinity: never.
  double next_s(double now_s);
  // Returns the flows that have ended by now, in the order in which they started.
  std::vector<uint64_t> advance(double now_s);
  double rate(uint64_t id) const;  // bytes/s, as of the last next_s()

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr Link kNowhere = std::numeric_limits<Link>::max();
  using Index = uint32_t;
  using Ends = std::set<std::pair<double, Index>>;

  struct Flow {
    uint64_t id = 0;
    uint64_t order = 0;  // of the start
    Route route;
    std::array<uint32_t, kMostLinks> places{};  // in the links' lists of flows
    double bytes = 0;
    double moves_s = 0;    // when it begins to move
    bool crosses = false;  // its links: it moves
    Link bottleneck = kNowhere;
    double end = 0;  // of the flow: progress of its bottleneck; until it has one, a time
    // While its links are solved:
    bool open = false, limited = false;
    double level = 0;
    Link limit = kNowhere;  // the bottleneck that it will have
  };
  struct LinkState {
    double bandwidth = 0;
    double level = kNever;  // of a bottleneck
    double progress = 0, since_s = 0;
    Ends ends;               // of the flows whose bottleneck it is
    double next_s = kNever;  // when the first of them ends
    double used = 0;
    std::vector<Index> flows;  // all that cross it
    // While it is solved:
    bool solves = false;
    double left = 0, weight = 0;  // for flows that have no level yet
    uint32_t count = 0;           // of these flows
    double more = 0;              // use beyond `used`, where it is not solved
  };
  struct Limited {  // a flow that another link than those which are solved limits
    double level;
    Index flow;
    Link link;
  };

  Index take_index();
  void enter(Index flow);
  void leave(Index flow);
  void touch(Link link);
  void settle(double now_s);
  void open();
  void fill();
  void give(Flow& flow, double level, Link limit);
  bool spread();
  void apply(double now_s);
  void move(Index flow, double now_s);
  void expect(Link link);
  double level_of(const Flow& flow) const;
  double progress_of(const LinkState& link, double now_s) const;

  std::vector<LinkState> links_;
  std::vector<Flow> pool_;
  std::vector<Index> unused_;
  std::unordered_map<uint64_t, Index> flows_;
  uint64_t started_ = 0;
  Ends waiting_;                            // flows that no link limits yet, or ever, by their time
  std::set<std::pair<double, Link>> busy_;  // bottlenecks by the time of their next end
  std::vector<Link> area_;                  // links to solve
  std::vector<Index> open_;                 // their flows
  std::vector<Limited> limited_;
  std::vector<Link> beside_;  // other links of these flows
};

}  // namespace tutti::simulation
