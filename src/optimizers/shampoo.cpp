// Shampoo (Gupta, Koren and Singer, "Shampoo: preconditioned stochastic tensor optimization", ICML
// 2018): each dimension of a tensor has a matrix of second moments, and the gradient is multiplied
// along each of the k dimensions by the inverse 2k-th root of that dimension's matrix:
//   H_i += G contracted with itself over all dimensions but i;  x -= lr G x_1 H_1^(-1/2k) ... .
// The matrices start at eps times the identity.
//
// As in the paper, a dimension beyond `largest_dimension` keeps the diagonal only, and roots, which
// cost the cube of a dimension, are taken every `root_every` steps. The order k counts all
// dimensions of the shape, also those of one, whose matrix is the number |G|^2: a column n x 1 has
// k = 2, and is not stepped like a vector of n.
//
// Roots that are some steps old know nothing of directions that gradients have taken since, and
// stretch these by up to 1/sqrt(eps): alone they diverge. So, as Anil et al. ("Scalable second
// order optimization for deep learning", 2020) do, the step of a tensor has the direction of the
// above and the length of SGD's, lr |G|, unless `graft` is false. Second moments are doubles: their
// small eigenvalues decide where steps are long.
#include "optimizers/shampoo.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/error.h"

namespace tutti {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;

// A dimension of a tensor, which is seen as `before` blocks of length x after values.
struct Axis {
  int64_t before, length, after;
  bool diagonal;
  size_t moments;  // where its matrix begins, in the moments and in the roots
  size_t values() const { return static_cast<size_t>(diagonal ? length : length * length); }
};

struct Block {
  Range range;
  std::vector<Axis> axes;
};

std::vector<Block> blocks_of(const Layout& layout, int64_t largest) {
  std::vector<Block> blocks;
  size_t moments = 0;
  for (const Tensor& tensor : layout.tensors) {
    Block block{tensor.range, {}};
    auto after = static_cast<int64_t>(tensor.range.size());
    int64_t before = 1;
    for (const int64_t length : tensor.shape) {
      after /= std::max<int64_t>(1, length);
      // The diagonal of a 1 x 1 matrix is the whole matrix.
      block.axes.push_back({before, length, after, length == 1 || length > largest, moments});
      moments += block.axes.back().values();
      before *= length;
    }
    if (block.axes.empty()) {  // a scalar
      block.axes.push_back({1, 1, 1, true, moments});
      ++moments;
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

size_t moments_in(const std::vector<Block>& blocks) {
  if (blocks.empty()) return 0;
  const Axis& last = blocks.back().axes.back();
  return last.moments + last.values();
}

class Shampoo : public Optimizer {
 public:
  Shampoo(const ShampooRule& rule, const Layout& layout)
      : size_(layout.size),
        eps_(rule.eps),
        graft_(rule.graft),
        root_every_(rule.root_every),
        blocks_(blocks_of(layout, rule.largest_dimension)),
        moments_(moments_in(blocks_)),
        roots_(moments_.size()) {
    size_t largest = 0;
    for (const Block& block : blocks_) largest = std::max(largest, block.range.size());
    gradient_.resize(static_cast<Eigen::Index>(largest));
    turned_.resize(static_cast<Eigen::Index>(largest));
  }

  void step(std::span<float> x, std::span<const float> g, double lr) override {
    TUTTI_CHECK(x.size() == size_ && g.size() == size_);
    const bool take_roots = age_[0] == 0;
    for (const Block& block : blocks_) {
      // A copy in memory of our own: Eigen's order of additions may depend on the alignment.
      const auto size = static_cast<Eigen::Index>(block.range.size());
      for (Eigen::Index i = 0; i < size; ++i)
        gradient_[i] = g[block.range.begin + static_cast<size_t>(i)];
      const double length = graft_ ? gradient_.head(size).norm() : 0;
      for (const Axis& axis : block.axes) add_moments(axis);
      const double exponent = -0.5 / static_cast<double>(block.axes.size());
      for (const Axis& axis : block.axes) {
        if (take_roots) take_root(axis, exponent);
        turn(axis);
      }
      const double turned = graft_ ? gradient_.head(size).norm() : 0;
      const double rate = turned > 0 ? lr * length / turned : lr;
      for (Eigen::Index i = 0; i < size; ++i)
        x[block.range.begin + static_cast<size_t>(i)] -= static_cast<float>(rate * gradient_[i]);
    }
    age_[0] = static_cast<float>((static_cast<int64_t>(age_[0]) + 1) % root_every_);
    ++steps_;
  }

  // The doubles as twice as many floats: what is restored must be exactly what was saved.
  std::vector<std::span<float>> state() override {
    return {values_in<float>(writable_bytes_of(std::span<double>(moments_))),
            values_in<float>(writable_bytes_of(std::span<double>(roots_))), age_};
  }
  int64_t steps() const override { return steps_; }
  void resume(int64_t steps) override { steps_ = steps; }

 private:
  View gradient_of(const Axis& axis, int64_t block) {
    return {gradient_.data() + block * axis.length * axis.after, axis.length, axis.after};
  }
  // Blocks of one value after the other are better seen as the rows of one matrix.
  View rows_of(const Axis& axis) { return {gradient_.data(), axis.before, axis.length}; }

  void add_moments(const Axis& axis) {
    double* moments = moments_.data() + axis.moments;
    if (axis.diagonal) {
      for (int64_t block = 0; block < axis.before; ++block)
        for (int64_t i = 0; i < axis.length; ++i)
          moments[i] += gradient_of(axis, block).row(i).squaredNorm();
      return;
    }
    View sum(moments, axis.length, axis.length);
    if (axis.after == 1) {
      sum.selfadjointView<Eigen::Lower>().rankUpdate(rows_of(axis).transpose());
    } else {
      for (int64_t block = 0; block < axis.before; ++block)
        sum.selfadjointView<Eigen::Lower>().rankUpdate(gradient_of(axis, block));
    }
  }

  void take_root(const Axis& axis, double exponent) {
    const double* moments = moments_.data() + axis.moments;
    double* root = roots_.data() + axis.moments;
    // Rounding may make the smallest eigenvalues negative.
    const auto power = [&](double value) {
      return std::pow(std::max(value, 0.0) + eps_, exponent);
    };
    if (axis.diagonal) {
      for (int64_t i = 0; i < axis.length; ++i) root[i] = power(moments[i]);
      return;
    }
    const Eigen::Map<const Matrix> symmetric(moments, axis.length, axis.length);
    // Reads the lower half only. A matrix that is not finite has no eigenvalues: the parameters
    // then become NaN, and the run says that it diverged.
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
    View out(root, axis.length, axis.length);
    if (solver.info() != Eigen::Success) {
      out.setConstant(std::nan(""));
      return;
    }
    const Matrix& vectors = solver.eigenvectors();
    out.noalias() =
        vectors * solver.eigenvalues().unaryExpr(power).asDiagonal() * vectors.transpose();
  }

  void turn(const Axis& axis) {
    if (axis.diagonal) {
      const double* root = roots_.data() + axis.moments;
      for (int64_t block = 0; block < axis.before; ++block)
        for (int64_t i = 0; i < axis.length; ++i) gradient_of(axis, block).row(i) *= root[i];
      return;
    }
    const View root(roots_.data() + axis.moments, axis.length, axis.length);
    if (axis.after == 1) {
      View(turned_.data(), axis.before, axis.length).noalias() = rows_of(axis) * root;
    } else {
      for (int64_t block = 0; block < axis.before; ++block)
        View(turned_.data() + block * axis.length * axis.after, axis.length, axis.after).noalias() =
            root * gradient_of(axis, block);
    }
    gradient_.swap(turned_);
  }

  size_t size_;
  double eps_;
  bool graft_;
  int64_t root_every_;
  std::vector<Block> blocks_;
  std::vector<double> moments_, roots_;
  std::vector<float> age_ = {0};       // of the roots, in steps
  Eigen::VectorXd gradient_, turned_;  // scratch: of one tensor
  int64_t steps_ = 0;
};

}  // namespace

void ShampooRule::visit(Visitor& v) {
  v.field("eps", eps, kPositive, "times the identity: the second moments at the start");
  v.field("root_every", root_every, {1, 1e6},
          "steps between two computations of the preconditioners, which cost the cube of a "
          "dimension");
  v.field("largest_dimension", largest_dimension, {1, 1e5},
          "longer dimensions of a tensor keep the diagonal of their second moments only");
  v.field("graft", graft, "the step of a tensor is as long as that of plain SGD");
}

std::unique_ptr<Optimizer> ShampooRule::make(const Layout& layout, double) const {
  return std::make_unique<Shampoo>(*this, layout);
}

OptimizerCost ShampooRule::extra_cost(const Layout& layout) const {
  OptimizerCost cost;
  size_t largest = 0;
  for (const Block& block : blocks_of(layout, largest_dimension)) {
    largest = std::max(largest, block.range.size());
    for (const Axis& axis : block.axes) {
      const auto length = static_cast<double>(axis.length);
      cost.values += 4.0 * static_cast<double>(axis.values());  // moments and roots, in double
      const double along = static_cast<double>(block.range.size()) * (axis.diagonal ? 1 : length);
      cost.flops += 3 * along;  // half of a product for the moments, a whole one to turn
      // Eigenvalues and vectors of a symmetric matrix, and the product that makes a root of them.
      if (!axis.diagonal)
        cost.flops += 11 * length * length * length / static_cast<double>(root_every);
    }
  }
  cost.values += 4.0 * static_cast<double>(largest);
  return cost;
}

}  // namespace tutti
