#include "strategies/pipeline/copies_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "core/error.h"
#include "models/stage.h"
#include "strategies/pipeline/planner.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

constexpr double kMostTried = 3500;  // ways to try exhaustively

class CopiesSearch {
 public:
  using Way = std::vector<ReplicatedStage>;

  CopiesSearch(const PipelineConfig& config, const PlanInput& input, const Placement& placement)
      : config_(config),
        input_(input),
        placement_(placement),
        pieces_(stages_between(input.architecture, input.architecture.cuts())) {}

  Placement run() {
    if (ways() <= kMostTried) {
      Way way;
      try_all(way, 0, placement_.nodes);
    } else {
      for (const Way& start : starts()) climb(start);
    }
    if (!best_)
      throw ConfigError(
          "strategy.copies",
          fmt::format("strategy.copies = \"auto\" finds no use for all of cluster.workers = {}: "
                      "each of the at most {} stages has at most {} copies, one for each "
                      "sample; raise task.global_batch, or lower cluster.workers",
                      placement_.nodes, pieces_.size(), most_copies()));
    return best_->placement;
  }

 private:
  struct Worth {
    bool fits;
    double step_s;
  };
  static bool better(const Worth& a, const Worth& b) {
    return a.fits != b.fits ? a.fits : a.step_s < b.step_s;
  }

  size_t most_copies() const { return static_cast<size_t>(input_.task.global_batch); }

  // Counts the ways to cut p pieces into stages and give them n nodes: (p + n - 2) over (n - 1).
  double ways() const {
    double count = 1;
    for (size_t i = 1; i < placement_.nodes; ++i)
      count *= static_cast<double>(pieces_.size() + i - 1) / static_cast<double>(i);
    return count;
  }

  void try_all(Way& way, size_t begin, size_t nodes) {
    for (size_t end = begin + 1; end <= pieces_.size(); ++end)
      for (size_t copies = 1; copies <= nodes; ++copies) {
        const bool last = end == pieces_.size();
        if (last != (copies == nodes)) continue;
        way.push_back({{begin, end}, copies});
        if (last)
          consider(way);
        else
          try_all(way, end, nodes - copies);
        way.pop_back();
      }
  }

  // Returns true when this way is better than all before.
  bool consider(const Way& way) {
    // Some copies may be idle where there are fewer micro-batches; it can be the fastest way all
    // the same, when all nodes are to be used. More copies than samples are no plan.
    for (const ReplicatedStage& stage : way)
      if (stage.replicas > most_copies()) return false;
    std::vector<size_t> key;
    for (const ReplicatedStage& stage : way)
      key.insert(key.end(), {stage.pieces.end, stage.replicas});
    const auto seen = seen_.find(key);
    if (seen != seen_.end() && best_ && !better(seen->second, {best_->fits, best_->step_s}))
      return false;
    Placement placement = placement_;
    for (const ReplicatedStage& stage : way) {
      placement.stages.push_back(
          {pieces_[stage.pieces.begin].begin, pieces_[stage.pieces.end - 1].end});
      placement.copies.push_back(stage.replicas);
    }
    Alternative found = estimated(std::move(placement), config_, input_);
    const Worth worth{found.fits, found.step_s};
    seen_[key] = worth;
    if (best_ && !better(worth, {best_->fits, best_->step_s})) return false;
    best_ = std::move(found);
    return true;
  }

  // Moves from a way to the best of its neighbours until none is better.
  void climb(const Way& start) {
    std::optional<Alternative> others = std::move(best_);
    best_.reset();
    consider(start);
    for (Way here = start;;) {
      Way next;
      for (const Way& neighbour : neighbours(here))
        if (consider(neighbour)) next = neighbour;
      if (next.empty()) break;
      here = std::move(next);
    }
    if (others && (!best_ || !better({best_->fits, best_->step_s}, {others->fits, others->step_s})))
      best_ = std::move(others);
  }

  // Neighbours differ by one cut moved by a piece, one node moved to another stage, two stages
  // merged, or one stage split.
  std::vector<Way> neighbours(const Way& way) const {
    std::vector<Way> found;
    for (size_t i = 0; i < way.size(); ++i) {
      for (size_t k = 0; k < way.size(); ++k)
        if (k != i && way[i].replicas > 1) {
          found.push_back(way);
          --found.back()[i].replicas;
          ++found.back()[k].replicas;
        }
      for (size_t cut = way[i].pieces.begin + 1; cut < way[i].pieces.end; ++cut)
        for (size_t copies = 1; copies < way[i].replicas; ++copies) {
          found.push_back(way);
          found.back()[i] = {{way[i].pieces.begin, cut}, copies};
          found.back().insert(found.back().begin() + static_cast<std::ptrdiff_t>(i) + 1,
                              ReplicatedStage{{cut, way[i].pieces.end}, way[i].replicas - copies});
        }
      if (i + 1 == way.size()) continue;
      if (way[i].pieces.size() > 1) {
        found.push_back(way);
        found.back()[i + 1].pieces.begin = --found.back()[i].pieces.end;
      }
      if (way[i + 1].pieces.size() > 1) {
        found.push_back(way);
        found.back()[i + 1].pieces.begin = ++found.back()[i].pieces.end;
      }
      found.push_back(way);
      found.back()[i].pieces.end = way[i + 1].pieces.end;
      found.back()[i].replicas += way[i + 1].replicas;
      found.back().erase(found.back().begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    return found;
  }

  // Returns so many stages, with nearly equal numbers of pieces and of nodes.
  Way even(size_t stages) const {
    Way way;
    for (size_t s = 0; s < stages; ++s)
      way.push_back(
          {part_of(pieces_.size(), stages, s), part_of(placement_.nodes, stages, s).size()});
    return way;
  }

  std::vector<Way> starts() const {
    std::vector<PlanPiece> pieces;
    Placement trial = placement_;
    trial.stages.assign(1, {0, 0});
    for (const Range range : pieces_) {
      trial.stages[0] = range;
      const StageTimes times = times_of(trial, config_, input_, 0);
      const Architecture part = stage_of(input_.architecture, range);
      pieces.push_back(
          {.compute_s = times.forward_s + times.backward_s - times.pass_s,
           .parameter_bytes = static_cast<double>(part.parameter_count * sizeof(float)) /
                              static_cast<double>(placement_.micro_batches),
           .output_bytes = static_cast<double>(output_values(part) * sizeof(float)) *
                           micro_batch_samples(input_, placement_.micro_batches),
           .pass_s = times.pass_s});
    }
    // Parameters are summed once for all micro-batches of a batch.
    Way programme = plan_replicated(pieces, placement_.nodes, shared_bandwidth(input_.cluster, 1),
                                    Synchronise::kAfterBatch)
                        .stages;
    size_t used = 0;
    for (const ReplicatedStage& stage : programme) used += stage.replicas;
    programme.front().replicas += placement_.nodes - used;
    std::vector<Way> found = {programme};
    // One start is not enough: between two ways that are good, those that are near them may be bad.
    for (size_t stages = 1; stages <= std::min(pieces_.size(), placement_.nodes); ++stages)
      found.push_back(even(stages));
    return found;
  }

  const PipelineConfig& config_;
  const PlanInput& input_;
  const Placement& placement_;
  const std::vector<Range> pieces_;
  std::map<std::vector<size_t>, Worth> seen_;  // by ends and copies of the stages
  std::optional<Alternative> best_;
};

}  // namespace

Placement plan_copies(const PipelineConfig& config, const PlanInput& input, Placement placement) {
  return CopiesSearch(config, input, placement).run();
}

}  // namespace tutti
