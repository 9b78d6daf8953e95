// What flows share: links, each with a bandwidth, between flows that each cross some of them.
//
// Rates are max-min fair: no flow can get more without taking it from one that has no more. Flows
// are weighted by the inverse of their penalty, as a longer round trip makes TCP slower. It is the
// model of SimGrid (Casanova and Marchal, "A network model for simulation of grid application",
// 2002; Velho and Legrand, "Accuracy study and improvement of network simulation in the SimGrid
// framework", 2009), but when a flow begins or ends only those links are solved again whose flows
// change: with thousands of flows at once, that is what a simulation's time goes to.
//
// A link is a bottleneck when it is full and its fullest flows could use more of it; their rate
// over their weight is its level. Every flow has the lowest level on its way, so a solution is
// right when that holds, whoever found it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace tutti::simulation {

class Network {
 public:
  using Link = uint32_t;
  struct Route {
    std::vector<Link> links;
    double latency_s = 0;
    double penalty = 1;
    double bound = std::numeric_limits<double>::infinity();  // bytes/s, whoever else there is
  };

  Link add_link(double bandwidth);  // bytes/s

  // `id` is the caller's, of no flow that has not ended. Bytes move after the route's latency.
  void start(uint64_t id, const Route& route, double bytes, double now_s);
  double stop(uint64_t id, double now_s);  // returns the bytes that are left

  bool empty() const { return flows_.empty(); }
  // When the next flow begins to move or ends, if nothing else happens; infinity: never.
  double next_s(double now_s);
  // The flows that have ended by now, in the order in which they did.
  std::vector<uint64_t> advance(double now_s);
  double rate(uint64_t id) const;  // as of the last next_s()

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  using Index = uint32_t;
  struct Flow {
    uint64_t id = 0;
    uint64_t order = 0;  // of the start
    std::vector<Link> links;
    std::vector<uint32_t> places;  // in the links' lists of flows
    double weight = 1, bound = kNever;
    double bytes = 0;  // left at `since_s`
    double rate = 0, since_s = 0;
    double next_s = 0;  // when it begins to move or ends
    size_t in_heap = 0;
    bool moves = false;
    // While its links are solved:
    bool free = false, frozen = false;
    double solved = 0;
  };
  struct LinkState {
    double bandwidth = 0;
    double used = 0;
    double level = kNever;  // unless it is a bottleneck
    std::vector<Index> flows;
    // While it is solved:
    bool solves = false, open = false;
    double left = 0, weight = 0;  // for flows that are not frozen
    uint32_t count = 0;
    double more = 0;  // use, if it is not solved
  };
  struct Capped {
    double level;
    Index flow;
  };

  void enter(Index flow, double now_s);
  void leave(Index flow);
  void touch(Link link);
  void settle(double now_s);
  void fill();
  void freeze(Flow& flow, double rate);
  double cap_of(const Flow& flow) const;
  bool spread();
  void apply(double now_s);
  double left_of(const Flow& flow, double now_s) const;

  // The flows by the time of what they do next.
  bool earlier(Index a, Index b) const;
  void push(Index flow);
  void pop(Index flow);
  void sift(size_t place);
  void put(size_t place, Index flow);

  std::vector<LinkState> links_;
  std::vector<Flow> pool_;
  std::vector<Index> unused_;
  std::unordered_map<uint64_t, Index> flows_;
  std::vector<Index> heap_;
  uint64_t started_ = 0;
  std::vector<Link> area_;   // links to solve
  std::vector<Index> free_;  // their flows
  std::vector<Capped> capped_;
  std::vector<Link> beside_;  // other links of these
};

}  // namespace tutti::simulation
