#include <gtest/gtest.h>

#include "audio_buffer.hpp"
#include "audio_chain.hpp"
#include "flush_schedule.hpp"

namespace stt {
namespace {

using std::chrono::milliseconds;

std::array<std::byte, frame_bytes> frame_of(std::size_t value) {
    std::array<std::byte, frame_bytes> frame{};
    frame.fill(static_cast<std::byte>(value));
    return frame;
}

TimePoint time_of(std::size_t ms) {
    return TimePoint{milliseconds{ms}};
}

TEST(AudioChain, ReadsAcrossBlocksAfterDrops) {
    BlockPool pool;
    AudioChain chain;
    for (std::size_t index = 0; index < 60; ++index) {
        chain.push_back(pool, time_of(index), frame_of(index));
    }
    for (std::size_t index = 0; index < 30; ++index) {
        EXPECT_EQ(chain.pop_front(), time_of(index));
    }
    EXPECT_EQ(pool.blocks_in_use(), 2U) << "an empty block goes back";
    EXPECT_EQ(chain.front_received_at(), time_of(30));
    EXPECT_EQ(chain.back_received_at(), time_of(59));
    std::vector<std::byte> all;
    std::size_t pieces = 0;
    for (; all.size() < chain.size_bytes(); ++pieces) {
        const auto piece = chain.bytes_at(all.size());
        all.insert(all.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(pieces, 2U);
    ASSERT_EQ(all.size(), 30 * frame_bytes);
    for (std::size_t index = 0; index < 30; ++index) {
        EXPECT_EQ(all[index * frame_bytes], static_cast<std::byte>(index + 30));
        EXPECT_EQ(all[(index * frame_bytes) + frame_bytes - 1], static_cast<std::byte>(index + 30));
    }
}

TEST(AudioChain, MovedFromIsEmptyAndUsable) {
    BlockPool pool;
    AudioChain chain;
    chain.push_back(pool, time_of(0), frame_of(1));
    const AudioChain taken = std::move(chain);
    EXPECT_EQ(taken.frames(), 1U);
    EXPECT_TRUE(chain.empty()); // NOLINT(bugprone-use-after-move): that is what is promised
    chain.push_back(pool, time_of(1), frame_of(2));
    EXPECT_EQ(chain.bytes_at(0)[0], std::byte{2});
}

TEST(BlockPool, KeepsWhatIsNeededAgainAndNoMore) {
    BlockPool pool;
    std::vector<BlockPool::Block> blocks;
    for (int index = 0; index < 1000; ++index) {
        blocks.push_back(pool.acquire());
    }
    blocks.clear();
    EXPECT_EQ(pool.blocks_in_use(), 0U);
    EXPECT_LE(pool.blocks_free(), 500U);
    const auto free_before = pool.blocks_free();
    const auto again = pool.acquire();
    EXPECT_EQ(pool.blocks_free(), free_before - 1);
}

TEST(AudioBuffer, DropOldestReportsWhatPrecedesTheBuffer) {
    BlockPool pool;
    AudioBuffer buffer{OverflowPolicy::drop_oldest, 3, pool};
    for (std::size_t seq = 1; seq <= 5; ++seq) {
        EXPECT_EQ(buffer.push(time_of(seq), frame_of(seq)),
                  seq <= 3 ? AudioBuffer::Pushed::kept : AudioBuffer::Pushed::dropped);
    }
    const auto dropped = buffer.take_dropped();
    ASSERT_TRUE(dropped);
    EXPECT_EQ(dropped->oldest_seq, 1U);
    EXPECT_EQ(dropped->newest_seq, 2U);
    EXPECT_EQ(dropped->oldest_at, time_of(1));
    EXPECT_EQ(dropped->newest_at, time_of(2));
    const auto batch = buffer.take();
    EXPECT_EQ(batch.range.oldest_seq, 3U);
    EXPECT_EQ(batch.range.newest_seq, 5U);
    EXPECT_EQ(batch.audio.bytes_at(0)[0], std::byte{3});
    EXPECT_FALSE(buffer.is_waiting());
}

TEST(AudioBuffer, CloseRefuses) {
    BlockPool pool;
    AudioBuffer buffer{OverflowPolicy::close, 1, pool};
    EXPECT_EQ(buffer.push(time_of(1), frame_of(1)), AudioBuffer::Pushed::kept);
    EXPECT_EQ(buffer.push(time_of(2), frame_of(2)), AudioBuffer::Pushed::refused);
    EXPECT_EQ(buffer.take().range.newest_seq, 1U);
}

TEST(FlushSchedule, ALateTickMovesNoOther) {
    FlushSchedule schedule{time_of(0), milliseconds{1000}};
    EXPECT_EQ(schedule.take_due(time_of(999)), std::nullopt);
    EXPECT_EQ(schedule.take_due(time_of(1700)), time_of(1000));
    EXPECT_EQ(schedule.next(), time_of(2000));
    EXPECT_EQ(schedule.take_due(time_of(2000)), time_of(2000));
    EXPECT_EQ(schedule.take_due(time_of(5500)), time_of(3000));
    EXPECT_EQ(schedule.next(), time_of(6000));
}

} // namespace
} // namespace stt
