// Open MPI's MPI_Allreduce in place, under mpirun, which decides the number of processes:
//   mpirun --allow-run-as-root --oversubscribe -n 2 peer_openmpi_allreduce --reps 20 --bytes 4096
// and with more processes than cores also --mca mpi_yield_when_idle 1. See peer.h for what is
// timed.
#include <mpi.h>

#include <algorithm>
#include <cstdio>

#include "bench/peers/peer.h"

namespace {

void all_reduce(std::vector<float>& values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
}

std::vector<double> measure(std::vector<float>& values, int repetitions) {
  std::vector<double> samples;
  for (int i = 0; i < repetitions; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = peer::now_us();
    all_reduce(values);
    samples.push_back(peer::now_us() - start);
  }
  MPI_Allreduce(MPI_IN_PLACE, samples.data(), repetitions, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return samples;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const peer::Options options = peer::parse(argc, argv);
  for (const size_t bytes : options.sizes_bytes) {
    std::vector<float> values(bytes / sizeof(float));
    peer::fill(values, rank);
    all_reduce(values);
    if (!peer::is_sum(values, size)) {
      std::fprintf(stderr, "openmpi: the sum is wrong\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    std::fill(values.begin(), values.end(), 0.0f);  // sums of sums would overflow
    measure(values, peer::warmups(options.repetitions));
    const std::vector<double> samples = measure(values, options.repetitions);
    if (rank == 0) peer::print_line("openmpi", "MPI_Allreduce in place", size, bytes, samples);
  }
  MPI_Finalize();
}
