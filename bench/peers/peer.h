// What the all-reduce peers share: arguments, the buffer to reduce, and the line that is printed.
//
// How every peer measures, so that figures compare: a few calls to warm up; then, per repetition, a
// barrier (not timed) and one all-reduce, timed in each process from its own return from the
// barrier to its own return from the call. The sample is the largest of these over the processes: a
// collective is done when the last one has its result.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace peer {

struct Options {
  int processes = 2;                                  // --processes 2
  int repetitions = 20;                               // --reps 20
  std::vector<size_t> sizes_bytes = {4096, 1048576};  // --bytes 4096,1048576
};

// Ends the program with code 2 and a usage line when the arguments are wrong.
Options parse(int argc, char** argv);

inline int warmups(int repetitions) { return 3 + repetitions / 10; }

// Values whose sum over the processes is exact and tells where a wrong element is.
void fill(std::span<float> values, int rank);
// Whether the values are the sum of fill() over ranks 0 to processes - 1.
bool is_sum(std::span<const float> values, int processes);

double now_us();

// {"impl":"openmpi","detail":"...","processes":2,"bytes":4096,"samples_us":[7.1,...]}
void print_line(const std::string& impl, const std::string& detail, int processes, size_t bytes,
                const std::vector<double>& samples_us);

}  // namespace peer
