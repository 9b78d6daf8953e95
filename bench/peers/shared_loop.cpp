// The bound on one machine: an all-reduce that is nothing but a loop over a shared mapping. Each
// process sums its part of all buffers and writes the sum into all of them, between two barriers.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "bench/peers/local_group.h"
#include "bench/peers/peer.h"

namespace peer {
namespace {

constexpr size_t kLine = 16;     // floats in a cache line: no line is written by two processes
constexpr size_t kBlock = 1024;  // sums that stay in the first-level cache

struct Part {
  size_t begin, end;
};

Part part_of(size_t count, int parts, int index) {
  const size_t lines = (count + kLine - 1) / kLine, all = static_cast<size_t>(parts);
  const auto cut = [&](size_t i) { return std::min(count, lines * i / all * kLine); };
  return {cut(static_cast<size_t>(index)), cut(static_cast<size_t>(index) + 1)};
}

void reduce_two(float* __restrict a, float* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

void reduce_many(std::span<float* const> buffers, Part part) {
  std::array<float, kBlock> sum;
  for (size_t begin = part.begin; begin < part.end; begin += kBlock) {
    const size_t count = std::min(kBlock, part.end - begin);
    std::copy_n(buffers[0] + begin, count, sum.data());
    for (const float* buffer : buffers.subspan(1))
      for (size_t i = 0; i < count; ++i) sum[i] += buffer[begin + i];
    for (float* buffer : buffers) std::copy_n(sum.data(), count, buffer + begin);
  }
}

void all_reduce(LocalGroup& group, std::span<float* const> buffers, Part part) {
  group.barrier();  // all have written their values
  if (buffers.size() == 2)
    reduce_two(buffers[0] + part.begin, buffers[1] + part.begin, part.end - part.begin);
  else
    reduce_many(buffers, part);
  group.barrier();  // all parts are summed
}

void run(LocalGroup& group, const Options& options, std::span<float* const> buffers) {
  group.pin();
  for (const size_t bytes : options.sizes_bytes) {
    const size_t count = bytes / sizeof(float);
    const std::span mine(buffers[static_cast<size_t>(group.rank())], count);
    const Part part = part_of(count, group.size(), group.rank());
    const auto call = [&] { all_reduce(group, buffers, part); };
    fill(mine, group.rank());
    call();
    if (!is_sum(mine, group.size())) throw std::runtime_error("shared_loop: the sum is wrong");
    group.barrier();
    std::fill(mine.begin(), mine.end(), 0.0f);  // sums of sums would overflow; 0 + 0 takes as long
    group.measure(warmups(options.repetitions), call);
    const std::vector<double> samples = group.measure(options.repetitions, call);
    if (group.rank() == 0)
      print_line("shared_loop", "barrier, loop, barrier", group.size(), bytes, samples);
  }
}

}  // namespace
}  // namespace peer

int main(int argc, char** argv) {
  const peer::Options options = peer::parse(argc, argv);
  const size_t most = *std::max_element(options.sizes_bytes.begin(), options.sizes_bytes.end());
  const auto processes = static_cast<size_t>(options.processes);
  const size_t stride = (most + 4095) / 4096 * 4096;
  const peer::SharedMemory memory(processes * stride);
  std::vector<float*> buffers;
  for (size_t i = 0; i < processes; ++i)
    buffers.push_back(reinterpret_cast<float*>(memory.data() + i * stride));
  return peer::run_group(options.processes,
                         std::max(options.repetitions, peer::warmups(options.repetitions)),
                         [&](peer::LocalGroup& group) { peer::run(group, options, buffers); });
}
