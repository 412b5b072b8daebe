package plimsoll.stt.support;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Locale;

/** The synthetic audio of the contract, and the reference computation over it. */
public final class Synthetic {
    private static final int SAMPLES = 320;
    private static final long MASK_32 = 0xFFFF_FFFFL;
    private static final long FNV_OFFSET = 2_166_136_261L;
    private static final long FNV_PRIME = 16_777_619L;
    private static final List<String> WORDS = List.of(
            ("the quick brown fox jumps over lazy dog hello world yes no okay right left stop go wait ready done "
                            + "again now later never")
                    .split(" "));

    private Synthetic() {}

    public static byte[] frame(long session, long seq) {
        ByteBuffer pcm = ByteBuffer.allocate(SAMPLES * 2).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < SAMPLES; i++) {
            pcm.putShort((short) ((seq * SAMPLES + session + i) * 17 % 20_000 - 10_000));
        }
        return pcm.array();
    }

    public static byte[] batch(long session, long firstSeq, int frames) {
        ByteBuffer pcm = ByteBuffer.allocate(frames * SAMPLES * 2);
        for (int i = 0; i < frames; i++) {
            pcm.put(frame(session, firstSeq + i));
        }
        return pcm.array();
    }

    /** The inference server's answer, as JSON. */
    public static String answer(byte[] pcm, int passes) {
        ByteBuffer samples = ByteBuffer.wrap(pcm).order(ByteOrder.LITTLE_ENDIAN);
        int count = pcm.length / 2;
        long checksum = FNV_OFFSET;
        long crossings = 0;
        double squares = 0;
        Boolean negative = null;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < count; i++) {
                int x = samples.getShort(i * 2);
                checksum ^= (x + 32_768 + pass) & 0xFFFF;
                checksum = checksum * FNV_PRIME & MASK_32;
                if (negative != null && negative != x < 0) {
                    crossings++;
                }
                negative = x < 0;
                squares += (double) x * x;
            }
        }
        long total = (long) count * passes;
        return String.format(
                Locale.ROOT,
                "{\"rms\":%s,\"zero_crossings\":%d,\"checksum\":%d,\"samples\":%d,\"transcript\":\"%s\",\"audio_bytes\":%d}",
                total == 0 ? 0.0 : Math.sqrt(squares / total),
                crossings,
                checksum,
                total,
                WORDS.get((int) (checksum % WORDS.size())),
                pcm.length);
    }
}
