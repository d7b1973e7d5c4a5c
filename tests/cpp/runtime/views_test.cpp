// Buffers in the memory of others: chains of views, ports, parts.
#include "hetnn/runtime/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetnn::runtime {
namespace {

std::vector<BoundBuffer> buffers_of(const std::vector<int64_t>& sizes) {
  std::vector<BoundBuffer> out;
  for (const int64_t bytes : sizes) {
    out.emplace_back();
    out.back().size_bytes = bytes;
  }
  return out;
}

// Buffer 0 is given by the caller, and so is the last.
Views between_ports(const std::vector<BoundBuffer>& buffers) {
  const auto last = static_cast<int32_t>(buffers.size()) - 1;
  return Views(buffers, [last](int32_t id) { return id == 0 || id == last; });
}

std::vector<std::vector<int64_t>> listed(const Views& views) {
  std::vector<std::vector<int64_t>> out;
  for (const BufferView& view : views.all()) out.push_back({view.buffer, view.of, view.offset_bytes});
  return out;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Views, OfViewsLieInTheFirst) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 64, 16, 8, 64});
  Views views = between_ports(buffers);
  views.add({1, 0, 0});
  views.add({2, 1, 32});
  views.add({3, 2, 8});
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 0, 0), ElementsAre(2, 0, 32), ElementsAre(3, 0, 40)));
  EXPECT_EQ(views.holder(3), 0);
  EXPECT_EQ(views.holder(4), 4);
}

TEST(Views, AnOutputHoldsWhatItIsAViewOf) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 64, 16, 64});
  Views views = between_ports(buffers);
  views.add({2, 1, 48});
  views.add({3, 1, 0});
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 3, 0), ElementsAre(2, 3, 48)));
}

TEST(Views, PartsLieInTheWholeWithWhatLiesInThem) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 16, 8, 32, 64, 64, 64});
  Views views = between_ports(buffers);
  views.add({2, 1, 8});   // a view of the part
  views.add({1, 3, 16});  // the part of a whole
  views.add({3, 4, 32});  // which is part of another
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 4, 48), ElementsAre(2, 4, 56), ElementsAre(3, 4, 32)));
}

TEST(Views, APartLiesInOneWhole) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 16, 32, 32, 64});
  Views views = between_ports(buffers);
  views.add({1, 2, 0});
  views.add({1, 2, 16});  // joined with itself
  views.add({1, 3, 0});   // and elsewhere
  views.add({2, 1, 0});   // a whole is in no part of its own
  views.add({0, 3, 0});   // what the caller gives lies where it is
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 2, 0)));
}

TEST(Views, PartsLieInAnOutput) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 16, 48, 64});
  Views views = between_ports(buffers);
  views.add({1, 3, 0});
  views.add({2, 3, 16});
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 3, 0), ElementsAre(2, 3, 16)));
}

TEST(Views, AnOutputThatIsPartOfAValueIsACopy) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 64, 32});
  Views views = between_ports(buffers);
  views.add({2, 1, 0});
  EXPECT_THAT(listed(views), IsEmpty());
}

TEST(Views, AnOutputThatIsAnInputIsACopy) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 64, 64});
  Views views = between_ports(buffers);
  views.add({1, 0, 0});
  views.add({2, 1, 0});
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 0, 0)));
}

TEST(Views, OfTwoOutputsOneHoldsTheValue) {
  const std::vector<BoundBuffer> buffers = buffers_of({64, 64, 64, 64});
  Views views(buffers, [](int32_t id) { return id == 0 || id >= 2; });
  views.add({2, 1, 0});
  views.add({3, 1, 0});
  EXPECT_THAT(listed(views), ElementsAre(ElementsAre(1, 2, 0)));
}

}  // namespace
}  // namespace hetnn::runtime
