#include "strategies/hogwild.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/capabilities.h"
#include "fabric/exchange.h"
#include "sparse/row_optimizer.h"
#include "sparse/row_table.h"
#include "strategies/averaging.h"
#include "strategies/local_training.h"

namespace tutti {
namespace {

constexpr Rank kOwner = 0;  // the shared parameters are in its window
constexpr size_t kLine = 64;

// In a window: the gradients, which the model writes; what this worker tells the others; and in the
// owner's, the parameters. All windows are alike.
size_t lines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
size_t progress_offset(size_t count) { return lines(count * sizeof(float)); }
size_t parameters_offset(size_t count) { return progress_offset(count) + kLine; }

// What a worker tells the others. Only it writes here.
struct Progress {
  int64_t samples;
  int64_t updates;
  int64_t stop;
};
static_assert(sizeof(Progress) <= kLine);

template <class T>
T relaxed(T& value) {
  return std::atomic_ref<T>(value).load(std::memory_order_relaxed);
}
template <class T>
void set_relaxed(T& value, T to) {
  std::atomic_ref<T>(value).store(to, std::memory_order_relaxed);
}

class HogwildWorker {
 public:
  explicit HogwildWorker(Context& context)
      : context_(context),
        me_(context.node.endpoint().rank()),
        count_(context.model.parameters().size()),
        training_(context, Pace::kFree),
        shared_(values_in<float>(context.window->of(kOwner).subspan(parameters_offset(count_)))
                    .first(count_)),
        seen_(count_) {
    if (const size_t width = context.model.architecture().row_width; width > 0)
      rows_.emplace(context.optimizer, width);
  }

  void run() {
    context_.node.membership().end_waits_on_any_loss(true);
    // All have the same initial parameters; windows begin with zeros.
    if (me_ == kOwner) std::copy_n(context_.model.parameters().data(), count_, shared_.data());
    meet(1);
    while (!training_.over() && !stopped()) {
      end_if_someone_is_lost();
      const int64_t known = total(&Progress::updates);
      if (rows_) {
        step_on_rows(training_.touch());
      } else {
        read_parameters();
        training_.gradient();
        training_.update();
        add_update();
      }
      const int64_t missed = total(&Progress::updates) - known;
      training_.end_step(static_cast<double>(missed));
      tell(&Progress::updates, training_.steps());
      tell(&Progress::samples, training_.own_samples());
      training_.set_samples(total(&Progress::samples));
      if (me_ == kOwner && training_.due() && !training_.over()) measure();
    }
    meet(2);
    read_parameters();
    training_.set_samples(total(&Progress::samples));
    training_.evaluate(context_.members);
  }

 private:
  Progress& progress(Rank rank) {
    return values_in<Progress>(
        context_.window->of(rank).subspan(progress_offset(count_), kLine))[0];
  }
  void tell(int64_t Progress::*field, int64_t value) { set_relaxed(progress(me_).*field, value); }
  int64_t total(int64_t Progress::*field) {
    int64_t sum = 0;
    for (const Rank rank : context_.members) sum += relaxed(progress(rank).*field);
    return sum;
  }
  bool stopped() { return relaxed(progress(kOwner).stop) != 0; }

  void read_parameters() {
    on_vectors(context_, 3, count_, [&] {
      float* own = context_.model.parameters().data();
      for (size_t i = 0; i < count_; ++i) own[i] = seen_.data()[i] = relaxed(shared_[i]);
    });
  }

  // What the optimizer did to the parameters that were read is done to those that are there now.
  // Others stay untouched, so sparse updates seldom meet.
  void add_update() {
    on_vectors(context_, 4, count_, [&] {
      const float* own = context_.model.parameters().data();
      for (const Parameter& parameter : context_.model.architecture().parameters)
        for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
          add_change(i, own[i], static_cast<float>(parameter.running_rate));
    });
  }

  // A sparse model: only the rows that the batch touches are read, stepped on and written.
  void step_on_rows(std::span<const uint64_t> keys) {
    const size_t width = rows_->width;
    const std::span<float> own = context_.model.parameters();
    for_each_value(keys, [&](size_t i) { own[i] = seen_.data()[i] = relaxed(shared_[i]); });
    training_.sparse_gradient();
    PhaseScope scope(context_.watch, Phase::kAggregate);
    const std::span<const float> gradients = context_.model.gradients();
    rows_->states.update(keys, [&](size_t i, uint32_t row) {
      rows_->optimizer.step(own.subspan(keys[i] * width, width), rows_->states.state(row),
                            gradients.subspan(keys[i] * width, width), training_.step_rate());
    });
    for_each_value(keys, [&](size_t i) { add_change(i, own[i]); });
  }

  template <class Visit>
  void for_each_value(std::span<const uint64_t> keys, const Visit& visit) {
    const size_t width = rows_->width;
    for (const uint64_t key : keys)
      for (size_t i = key * width; i < (key + 1) * width; ++i) visit(i);
  }

  // What was done to the value that was read is done to the one that is there now. A running
  // statistic moves by its share of the distance from there: many workers that all push it by that
  // from an old value would drive it to and fro, further each time.
  void add_change(size_t i, float own, float running_rate = 0) {
    const float seen = seen_.data()[i];
    if (const float change = own - seen; change != 0) {
      const float now = relaxed(shared_[i]);
      set_relaxed(shared_[i], now + change - running_rate * (now - seen));
    }
  }

  // Rank 0 measures what it sees, alone; the others go on.
  void measure() {
    read_parameters();
    if (training_.evaluate(std::span(&me_, 1))) tell(&Progress::stop, 1);
  }

  // Nobody goes on before all have come; what they wrote before is visible afterwards.
  void meet(uint64_t number) {
    PhaseScope scope(context_.watch, Phase::kWait);
    context_.window->post(0, number);
    for (const Rank rank : context_.members) {
      Completion completion = context_.window->await(rank, 0, number, context_.node.timeout_s());
      completion.tag = Tag(Purpose::kControl, Tag::wrapped(training_.steps()));
      require_done(context_.node, completion);
    }
  }

  // Training waits for nobody, so it has to look.
  void end_if_someone_is_lost() {
    while (const auto event = context_.node.membership().next_event())
      if (event->kind == MemberEvent::Kind::kLost)
        throw FabricError(FabricError::Kind::kPeerLost, event->rank,
                          fmt::format("lost rank {}", event->rank));
  }

  // Of a sparse model: the optimizer, with its state for the rows that this worker has touched.
  struct Rows {
    Rows(const OptimizerConfig& config, size_t row_width)
        : width(row_width), optimizer(config), states(1, optimizer.state_width(width)) {}
    size_t width;
    RowOptimizer optimizer;
    RowTable states;  // beside a value that nobody uses
  };

  Context& context_;
  const Rank me_;
  const size_t count_;
  LocalTraining training_;
  std::span<float> shared_;
  Buffer<float> seen_;  // the parameters as this worker read them
  std::optional<Rows> rows_;
};

class Hogwild : public Strategy {
 public:
  void visit(Visitor&) override {}

  Taxonomy taxonomy() const override {
    return {.structure = "single node",
            .parallelism = "data",
            .optimisation = "centralised",
            .timing = Timing::kAsynchronous,
            .pattern = "shared memory",
            .data = "shares of each batch",
            .stragglers = "nobody waits",
            .communication = "nothing: it writes shared memory",
            .computation = "a share of the batch"};
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    validate(input.task, input.cluster);
    const size_t count = input.architecture.parameter_count;
    const auto bytes = static_cast<double>(count * sizeof(float));
    set_workers(plan, input, {.extra_memory = 2 * bytes});  // as read, and shared
    for (NodePlan& node : plan.nodes)
      node.window_bytes = parameters_offset(count) + lines(count * sizeof(float));
    plan.sharing = Sharing::kGradients;
    plan.gradients_shared = true;
    plan.rows = RowUse::kTouched;
    return plan;
  }

  NodeResult run(Context& context) const override {
    HogwildWorker(context).run();
    return {context.members};
  }

 private:
  static void validate(const TaskConfig& task, const ClusterConfig& cluster) {
    refuse_deterministic(task, "hogwild");
    if (capabilities_of(cluster).concurrent_memory) return;
    if (cluster.remote == 0)
      throw ConfigError("cluster.fabric",
                        fmt::format("strategy.kind = \"hogwild\" lives from workers that write the "
                                    "same memory at once, which cluster.fabric = \"{}\" does not "
                                    "have; set it to \"process\", or choose another strategy",
                                    word_of(cluster.fabric)));
    throw ConfigError("cluster.remote",
                      fmt::format("strategy.kind = \"hogwild\" lives from workers that write the "
                                  "same memory at once, but cluster.remote = {} of them are on "
                                  "other hosts; set it to 0, or choose another strategy",
                                  cluster.remote));
  }
};

}  // namespace

std::vector<Variant> hogwild_variants() { return {{"hogwild", {}}}; }

std::unique_ptr<Strategy> make_hogwild() { return std::make_unique<Hogwild>(); }

}  // namespace tutti
