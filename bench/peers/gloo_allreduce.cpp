// gloo, the collective library below PyTorch's CPU training: TCP over the loopback interface. For
// every size the fastest of its algorithms is found first and then measured. See peer.h for what
// is timed.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "bench/peers/local_group.h"
#include "bench/peers/peer.h"

namespace peer {
namespace {

// Calls per algorithm to find the fastest; few where one takes a good part of a second.
constexpr int kMostTrials = 7;
int trials(size_t bytes) { return bytes < size_t{4} << 20 ? kMostTrials : 3; }

struct Algorithm {
  const char* name;
  std::function<void()> call;
};

using Device = std::shared_ptr<gloo::transport::Device>;
using Context = std::shared_ptr<gloo::Context>;

Context connect(const LocalGroup& group, const std::string& directory, Device& device) {
  std::filesystem::create_directories(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(group.rank(), group.size());
  gloo::rendezvous::FileStore store(directory);
  context->connectFullMesh(store, device);
  return context;
}

Algorithm newer(const Context& context, std::vector<float>& values) {
  return {"allreduce", [context, &values] {
            gloo::AllreduceOptions options(context);
            options.setOutput(values.data(), values.size());
            void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
            options.setReduceFunction(sum);
            gloo::allreduce(options);
          }};
}

template <class T>
Algorithm older(const char* name, const Context& context, std::vector<float>& values) {
  const std::vector<float*> pointers = {values.data()};
  const auto algorithm = std::make_shared<T>(context, pointers, static_cast<int>(values.size()));
  return {name, [algorithm] { algorithm->run(); }};
}

// Each on connections of its own: what one algorithm does to the windows of a connection can slow
// another down a hundredfold (seen with four processes and 4 MiB).
constexpr size_t kAlgorithms = 4;
std::vector<Algorithm> algorithms(std::span<const Context> contexts, std::vector<float>& values) {
  return {newer(contexts[0], values),
          older<gloo::AllreduceRing<float>>("ring", contexts[1], values),
          older<gloo::AllreduceRingChunked<float>>("ring_chunked", contexts[2], values),
          older<gloo::AllreduceHalvingDoubling<float>>("halving_doubling", contexts[3], values)};
}

// The same in every process: they all see the same samples.
const Algorithm& fastest(LocalGroup& group, const std::vector<Algorithm>& all, int calls) {
  const Algorithm* best = nullptr;
  double best_us = 0;
  for (const Algorithm& algorithm : all) {
    std::vector<double> samples = group.measure(calls, algorithm.call);
    const auto median = samples.begin() + calls / 2;
    std::nth_element(samples.begin(), median, samples.end());
    if (best && *median >= best_us) continue;
    best = &algorithm;
    best_us = *median;
  }
  return *best;
}

void check(LocalGroup& group, const Algorithm& algorithm, std::vector<float>& values) {
  fill(values, group.rank());
  group.barrier();
  algorithm.call();
  if (!is_sum(values, group.size()))
    throw std::runtime_error(std::string("gloo: the sum is wrong: ") + algorithm.name);
  group.barrier();
}

void run(LocalGroup& group, const Options& options, const std::string& directory) {
  const gloo::transport::tcp::attr loopback("127.0.0.1");
  Device device = gloo::transport::tcp::CreateDevice(loopback);
  std::vector<Context> contexts;
  while (contexts.size() < options.sizes_bytes.size() * kAlgorithms)
    contexts.push_back(connect(group, directory + "/" + std::to_string(contexts.size()), device));
  group.barrier();
  if (group.rank() == 0) std::filesystem::remove_all(directory);  // all have met
  for (size_t i = 0; i < options.sizes_bytes.size(); ++i) {
    const size_t bytes = options.sizes_bytes[i];
    std::vector<float> values(bytes / sizeof(float));
    const std::vector<Algorithm> all =
        algorithms(std::span(contexts).subspan(i * kAlgorithms, kAlgorithms), values);
    for (const Algorithm& algorithm : all) check(group, algorithm, values);
    std::fill(values.begin(), values.end(), 0.0f);  // sums of sums would overflow
    const Algorithm& best = fastest(group, all, trials(bytes));
    group.measure(warmups(options.repetitions), best.call);
    const std::vector<double> samples = group.measure(options.repetitions, best.call);
    if (group.rank() == 0) print_line("gloo", best.name, group.size(), bytes, samples);
  }
}

}  // namespace
}  // namespace peer

int main(int argc, char** argv) {
  const peer::Options options = peer::parse(argc, argv);
  std::string directory = (std::filesystem::temp_directory_path() / "tutti-gloo-XXXXXX").string();
  if (!mkdtemp(directory.data()))
    throw std::system_error(errno, std::generic_category(), directory);
  const int most =
      std::max({options.repetitions, peer::warmups(options.repetitions), peer::kMostTrials});
  const int code = peer::run_group(options.processes, most, [&](peer::LocalGroup& group) {
    peer::run(group, options, directory);
  });
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return code;
}
