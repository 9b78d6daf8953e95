#include "jobs/participant.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>

#include "core/error.h"
#include "core/finite.h"
#include "core/units.h"
#include "fabric/outcome.h"
#include "jobs/energy.h"
#include "jobs/parameters_file.h"
#include "jobs/record_keeper.h"
#include "jobs/reference_kernel.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/traffic_notes.h"
#include "models/sparse_model.h"
#include "strategies/evaluation.h"
#include "strategies/windows.h"

namespace tutti {
namespace {

constexpr int kMostTimelines = 64;
// How many steps a node's timeline covers: the first, in which things settle, and two more.
constexpr size_t kTracedSteps = 3;
// Where nodes are not in step, others take more steps while the first takes these.
constexpr size_t kMostTracedSteps = 32;
// RAPL counters start again after minutes.
constexpr double kCountersEvery_s = 10;

double peak_memory_bytes(const Stage& stage, const Clock& clock, Rank rank) {
  if (!clock.simulated()) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
  }
  return stage.resolved.plan.nodes[static_cast<size_t>(rank)].memory_bytes;
}

// Returns whose loss ends the test: a worker that the strategy has taken out of the members is lost
// already, and the others measure without it.
std::vector<Rank> needed_in_test(std::vector<Rank> members, const Plan& plan) {
  for (auto rank = static_cast<Rank>(plan.workers); rank < std::ssize(plan.nodes); ++rank)
    members.push_back(rank);
  return members;
}

class Participant {
 public:
  Participant(const Stage& stage, Node& node)
      : stage_(stage),
        job_(stage.resolved.job),
        plan_(stage.resolved.plan),
        architecture_(stage.resolved.architecture),
        node_(node),
        watch_(node.clock()),
        started_s_(node.clock().now()),
        traffic_(node.endpoint().size() <= kMostTimelines ? 256 : 16) {
    const Rank rank = node.endpoint().rank();
    if (!stage.folder.empty())
      log_ = Log([path = fmt::format("{}/node-{}.log", stage.folder, rank)](
                     std::string_view line) { append_to_file(path, line); },
                 [this] { return node_.clock().now(); });
    for (Rank worker = 0; worker < stage.resolved.plan.workers; ++worker)
      members_.push_back(worker);
    if (rank == 0 && !node.clock().simulated()) counters_.emplace();
    recorder_ = Recorder(
        [this](const StepRow& row) {
          keeper_->note(row);
          observe(row);
        },
        [this](const EvaluationRow& row) {
          keeper_->note(row);
          log_.info(
              fmt::format("step {}: quality {:.6f}, loss {:.6f}", row.step, row.quality, row.loss));
        });
    keeper_.emplace(stage, node, log_, recorder_);
  }

  std::string run() {
    try {
      train();
      measure_test();
      keeper_->continue_if_due();
    } catch (const Error& error) {
      warn_of(error);
      keeper_->end();
      finish_report();
      throw PartialResult{to_text(report_), with_step()};
    }
    keeper_->end();
    finish_report();
    if (is_first_worker() && !stage_.folder.empty() && node_.clock().arithmetic().is_done()) save();
    log_.info("done");
    return to_text(report_);
  }

 private:
  // A log that cannot be written must not hide why the node ends.
  void warn_of(const Error& error) {
    try {
      log_.warn(error.what());
    } catch (const DataError&) {
      // the error itself is in the record
    }
  }

  void train() {
    log_.info(fmt::format("rank {} of {}, {}, {} parameters", node_.endpoint().rank(),
                          node_.endpoint().size(), node_.endpoint().role(node_.endpoint().rank()),
                          architecture_.parameter_count));
    const SharedMemory shared = open_windows(node_, plan_, log_);
    model_.emplace(plan_, node_.endpoint().rank(),
                   NodeModel::Making{
                       .maker = node_.clock().arithmetic().is_done() ? stage_.models : kCostModels,
                       .options = {job_.task.seed, real_threads()},
                       .arithmetic = node_.clock().arithmetic(),
                       .gradients = shared.gradients});
    report_.reference_flops = reference_flops();
    busy_before_s_ = node_.clock().busy_s();
    watch_ = Stopwatch(node_.clock());
    started_s_ = watch_.since_s();
    watch_.trace(node_.endpoint().size() <= kMostTimelines);
    if (counters_) counters_->sample();
    joules_before_ = counters_ ? counters_->joules() : 0;
    context_.emplace(make_context(shared.window));
    trained_ = job_.strategy->run(*context_);
    members_ = trained_.members;
    note_totals();
    trained_s_ = watch_.since_s();
    // The last update may have gone too far, and nobody computes with it where there is no test.
    if (knows_parameters() && !all_finite(model_->parameters()))
      throw DivergedError(
          "the parameters are not finite numbers after the last step; try a "
          "smaller optimizer.lr");
  }

  // Servers make the rows of a sparse model as they are touched; a worker's model holds some.
  bool spreads_rows() const { return architecture_.row_width > 0 && plan_.rows == RowUse::kSpread; }

  std::span<const uint64_t> held_keys() const {
    const auto* const sparse = dynamic_cast<const SparseModel*>(&model_->whole());
    if (!sparse || sparse->held().size() == architecture_.rows()) return {};
    return sparse->held();
  }

  void save() const {
    const std::string path = stage_.folder + "/parameters.safetensors";
    if (const auto keys = held_keys(); !keys.empty())
      save_rows(path, architecture_, keys, model_->parameters());
    else
      save_parameters(path, architecture_, model_->parameters());
    if (!plan_.keeps.empty())
      save_attachment(fmt::format("{}/{}.safetensors", stage_.folder, plan_.keeps),
                      trained_.attachment);
  }

  // Once trained, those that are still members have agreed on all of them.
  bool knows_parameters() const {
    if (!model_ || !model_->is_whole() || !node_.clock().arithmetic().is_done()) return false;
    if (trained_s_ == 0) return !spreads_rows();
    return std::find(members_.begin(), members_.end(), node_.endpoint().rank()) != members_.end();
  }

  // Others may hold a part of the parameters, or none.
  bool is_worker() const { return node_.endpoint().rank() < plan_.workers; }

  // Of those that are left. One that came back need not be a member any more.
  bool is_first_worker() const {
    const auto first = std::ranges::find_if(
        members_, [this](Rank rank) { return node_.membership().alive(rank); });
    return first != members_.end() && *first == node_.endpoint().rank();
  }

  // All simulated nodes share a process: how many threads one has is a matter of its speed.
  int real_threads() const {
    if (node_.clock().simulated()) return 1;
    return static_cast<int>(threads_of(job_.cluster, node_.endpoint().rank()));
  }

  double reference_flops() const {
    if (!node_.clock().simulated()) return measure_reference_flops();
    const ClusterConfig& cluster = job_.cluster;
    return cluster.speed_flops * speed_factor_of(cluster, node_.endpoint().rank());
  }

  // After each step: the pictures that the record shows beside its totals.
  void observe(const StepRow& row) {
    if (report_.step_ends.size() < kTracedSteps) report_.step_ends.push_back(node_.clock().now());
    const size_t traced = node_.endpoint().rank() == 0 ? kTracedSteps : kMostTracedSteps;
    if (++steps_observed_ == traced) watch_.trace(false);
    traffic_.step(row.time_s, node_.endpoint().traffic().bytes_sent);
    if (counters_ && row.time_s - sampled_s_ > kCountersEvery_s) {
      counters_->sample();
      sampled_s_ = row.time_s;
    }
  }

  Context make_context(Window* window) {
    return Context{
        node_,  plan_,  job_.task, job_.cluster, job_.optimizer, stage_.resolved.data, *model_,
        window, watch_, recorder_, log_,         members_,       stage_.folder};
  }

  // The final quality, on samples that nothing was chosen by. Not part of the training time, nor of
  // its traffic.
  void measure_test() {
    if (stage_.resolved.data.splits.test.empty() || !is_worker()) return;
    if (trained_.test) return measure_test_by_strategy();
    Recorder unused;
    Stopwatch untimed(node_.clock());
    Context context{node_,   plan_,   job_.task, job_.cluster, job_.optimizer, stage_.resolved.data,
                    *model_, nullptr, untimed,   unused,       log_,           members_};
    // The only one of its part: asynchronous workers have not taken the same number of steps.
    const Tag tag(Purpose::kEvaluation, 0, EvaluationPart::kTest);
    const double quality = test_quality(context, tag);
    if (!std::isnan(quality)) report_.test_quality = quality;
  }

  void measure_test_by_strategy() {
    const Stopwatch trained = watch_;
    const double quality = trained_.test();
    watch_ = trained;
    if (!std::isnan(quality)) report_.test_quality = quality;
  }

  // Together, or where the others go on without a lost node, by the first of them.
  double test_quality(Context& context, Tag tag) {
    const std::span<const uint32_t> samples = stage_.resolved.data.splits.test;
    try {
      node_.membership().end_waits_on_loss_of(needed_in_test(members_, plan_));
      return evaluate_together(context, samples, tag).quality;
    } catch (const FabricError& error) {
      if (error.kind() != FabricError::Kind::kPeerLost || error.peer() == kAnyRank ||
          !plan_.nodes[static_cast<size_t>(error.peer())].may_be_lost)
        throw;
      log_.warn(error.what());
    }
    if (!is_first_worker()) return NAN;
    const EvaluationSums sums =
        evaluate_chunks(context, samples, 0, evaluation_chunks(samples.size()), 1);
    return quality_of(context, sums, samples.size()).quality;
  }

  // The totals are of training only: what is measured after it does not count.
  void note_totals() {
    watch_.enter(Phase::kOther);
    node_.clock().end_part();
    report_.total_s = watch_.since_s() - started_s_;
    report_.compute_s = watch_.seconds(Phase::kCompute);
    report_.communicate_s = watch_.seconds(Phase::kCommunicate);
    report_.aggregate_s = watch_.seconds(Phase::kAggregate);
    report_.wait_s = watch_.seconds(Phase::kWait);
    report_.other_s = watch_.seconds(Phase::kOther);
    report_.cpu_s = node_.clock().busy_s() - busy_before_s_;
    if (counters_ && counters_->available()) {
      counters_->sample();
      report_.joules = counters_->joules() - joules_before_;
      report_.energy_method = counters_->method();
    }
    const Traffic traffic = node_.endpoint().traffic();
    report_.bytes_sent = traffic.bytes_sent;
    report_.messages = traffic.messages_sent;
    report_.links.clear();
    const std::vector<uint64_t> sent = node_.endpoint().bytes_by_peer();
    for (size_t peer = 0; peer < sent.size(); ++peer)
      if (sent[peer] > 0) report_.links.emplace_back(static_cast<int>(peer), sent[peer]);
  }

  // The launcher computes the losses of whole batches from these. A restarted node is left out,
  // because it counts its steps anew.
  void note_losses() {
    if (!is_worker() || plan_.workers == 1 || !node_.clock().arithmetic().is_done()) return;
    if (plan_.taxonomy.timing != Timing::kSynchronous) return;
    if (node_.membership().incarnation(node_.endpoint().rank()) > 0) return;
    for (const StepRow& row : recorder_.steps()) {
      report_.losses.push_back(row.loss);
      report_.shares.push_back(row.share);
    }
  }

  void finish_report() {
    if (trained_s_ == 0) note_totals();  // it ended early
    report_.rank = node_.endpoint().rank();
    report_.role = node_.endpoint().role(report_.rank);
    report_.peak_memory_bytes = peak_memory_bytes(stage_, node_.clock(), report_.rank);
    report_.steps = static_cast<int64_t>(recorder_.steps().size());
    report_.samples = recorder_.samples();
    report_.own_samples = recorder_.own_samples();
    note_losses();
    report_.freshness = recorder_.freshness();
    report_.counters = recorder_.counters();
    report_.timeline = watch_.intervals();
    report_.traffic = traffic_.notes();
    report_.traffic.emplace_back(report_.total_s, report_.bytes_sent);
    if (keeper_->keeps() || !is_worker()) report_.evaluations = recorder_.evaluations();
    if (keeper_->keeps()) report_.extra = recorder_.extra();
    if (!knows_parameters()) return;
    const std::span<const uint64_t> keys = held_keys();
    const std::span<const float> parameters = model_->parameters();
    report_.parameters_sha256 =
        keys.empty() ? parameters_sha256(architecture_, parameters) : rows_sha256(keys, parameters);
  }

  // The error under way, saying at which step it happened.
  std::exception_ptr with_step() const {
    try {
      throw;
    } catch (const FabricError& error) {
      return std::make_exception_ptr(FabricError(
          error.kind(), error.peer(),
          fmt::format("rank {} at step {}: {}", node_.endpoint().rank(),
                      static_cast<size_t>(plan_.resumed.steps) + recorder_.steps().size() + 1,
                      error.what())));
    } catch (...) {
      return std::current_exception();
    }
  }

  const Stage& stage_;
  const Job& job_;
  const Plan& plan_;
  const Architecture& architecture_;
  Node& node_;
  Stopwatch watch_;
  double started_s_;
  double trained_s_ = 0, busy_before_s_ = 0;
  std::optional<EnergyCounters> counters_;  // of rank 0, for its machine
  double joules_before_ = 0;
  double sampled_s_ = 0;
  size_t steps_observed_ = 0;
  Log log_;
  Recorder recorder_;
  std::optional<RecordKeeper> keeper_;
  NodeReport report_;
  TrafficNotes traffic_;
  std::vector<Rank> members_;
  std::optional<NodeModel> model_;
  std::optional<Context> context_;  // refers to all of the above
  NodeResult trained_;              // may refer to the context
};

}  // namespace

std::string participate(const Stage& stage, Node& node) {
  try {
    return Participant(stage, node).run();
  } catch (const std::bad_alloc&) {  // what it had is free again, so that this can be said
    throw Error(fmt::format(
        "rank {}: out of memory; {} were expected for each worker. Use a smaller task.model or "
        "task.global_batch, fewer cluster.workers, or raise the limit (ulimit -v)",
        node.endpoint().rank(),
        human_quantity(stage.resolved.plan.most_memory_bytes(), Unit::kBytes)));
  }
}

}  // namespace tutti
