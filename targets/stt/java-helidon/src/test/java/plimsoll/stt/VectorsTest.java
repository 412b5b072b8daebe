package plimsoll.stt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.AnswerReader;
import plimsoll.stt.message.Failure;
import plimsoll.stt.message.FailureKind;
import plimsoll.stt.message.GatewayError;
import plimsoll.stt.message.Partial;
import plimsoll.stt.message.StartMessage;
import plimsoll.stt.session.Span;
import plimsoll.stt.support.Synthetic;
import plimsoll.stt.support.Vectors;

/** The vectors that all gateways share; {@code frames.json} is read by the decoder's own tests. */
class VectorsTest {
    private static final double NANOS_PER_MS = 1e6;

    static Stream<Arguments> starts() throws IOException {
        return Vectors.of("start.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("starts")
    void start(String id, JsonNode vector) {
        assertEquals(
                vector.get("ok").asBoolean(),
                StartMessage.isStart(vector.get("text").asText()),
                id);
    }

    static Stream<Arguments> answers() throws IOException {
        return Vectors.of("inference_answers.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("answers")
    void inferenceAnswer(String id, JsonNode vector) {
        Answer answer = AnswerReader.read(vector.get("body").asText().getBytes(StandardCharsets.UTF_8));
        if (vector.get("ok").asBoolean()) {
            assertInstanceOf(Answer.Inference.class, answer, id);
        } else {
            Failure failure = assertInstanceOf(Failure.class, answer, id);
            assertEquals(vector.get("kind").asText(), failure.kind().label());
            assertEquals(OptionalInt.of(200), failure.status());
        }
    }

    static Stream<Arguments> failures() throws IOException {
        return Vectors.of("inference_failures.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("failures")
    void inferenceFailure(String id, JsonNode vector) {
        Failure failure =
                switch (vector.get("transport").asText()) {
                    case "reset" -> Failure.connection("reset");
                    case "timeout" -> Failure.timeout();
                    default -> Failure.status(vector.get("status").asInt());
                };
        assertEquals(vector.get("kind").asText(), failure.kind().label(), id);
        assertEquals(vector.get("stage").asText(), failure.kind().stage(), id);
        assertEquals(vector.get("retryable").asBoolean(), failure.kind().retryable(), id);
    }

    static Stream<Arguments> partials() throws IOException {
        return Vectors.of("partials.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("partials")
    void partial(String id, JsonNode vector) throws IOException {
        JsonNode batch = vector.get("batch");
        JsonNode config = vector.get("config");
        Span span = new Span(
                batch.get("oldest_frame_seq").asLong(),
                batch.get("newest_frame_seq").asLong(),
                0,
                0);
        Answer.Inference inference = assertInstanceOf(
                Answer.Inference.class,
                AnswerReader.read(vector.get("inference").toString().getBytes(StandardCharsets.UTF_8)));
        Partial partial =
                new Partial(span, inference, config.get("cpu_passes").asLong(), nanos(batch, "flush_lateness_ms"));
        assertEquals(vector.get("expect"), Vectors.json(partial.toJson()), id);
    }

    static Stream<Arguments> errors() throws IOException {
        return Vectors.of("errors.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("errors")
    void error(String id, JsonNode vector) throws IOException {
        JsonNode input = vector.get("input");
        JsonNode batch = input.get("batch");
        long now = (long) (100_000 * NANOS_PER_MS);
        JsonNode status = input.get("inference_status");
        Failure failure = new Failure(
                kind(input.get("kind").asText()),
                input.get("message").asText(),
                status.isNull() ? OptionalInt.empty() : OptionalInt.of(status.asInt()));
        GatewayError error = new GatewayError(
                failure,
                new Span(
                        batch.get("oldest_frame_seq").asLong(),
                        batch.get("newest_frame_seq").asLong(),
                        now - nanos(batch, "oldest_age_ms"),
                        now - nanos(batch, "newest_age_ms")),
                now,
                nanos(batch, "flush_lateness_ms"),
                input.get("inference_elapsed_ms").isNull()
                        ? GatewayError.NO_INFERENCE
                        : nanos(input, "inference_elapsed_ms"),
                input.get("inflight_gateway_batches").asInt(),
                input.get("gateway_buffer_frames").asInt());
        assertEquals(vector.get("expect"), Vectors.json(error.toJson()), id);
    }

    private static FailureKind kind(String label) {
        return Stream.of(FailureKind.values())
                .filter(kind -> kind.label().equals(label))
                .findFirst()
                .orElseThrow();
    }

    private static long nanos(JsonNode object, String field) {
        return Math.round(object.get(field).asDouble() * NANOS_PER_MS);
    }

    static Stream<Arguments> synthetic() throws IOException {
        return Vectors.of("synthetic.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("synthetic")
    void syntheticAudio(String id, JsonNode vector) throws NoSuchAlgorithmException {
        byte[] pcm = Synthetic.frame(
                vector.get("session").asLong(), vector.get("seq").asLong());
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(pcm);
        assertEquals(vector.get("pcm_sha256").asText(), HexFormat.of().formatHex(digest), id);
        assertEquals(
                vector.get("first_samples").get(0).asInt(),
                ByteBuffer.wrap(pcm).order(ByteOrder.LITTLE_ENDIAN).getShort());
    }

    static Stream<Arguments> references() throws IOException {
        return Vectors.of("reference.json");
    }

    /** Holds the reference that the other tests answer with to the contract's. */
    @ParameterizedTest(name = "{0}")
    @MethodSource("references")
    void reference(String id, JsonNode vector) throws IOException {
        JsonNode from = vector.get("pcm_from");
        byte[] pcm = from == null
                ? HexFormat.of().parseHex(vector.get("pcm").asText())
                : Synthetic.batch(
                        from.get("session").asLong(),
                        from.get("first_seq").asLong(),
                        from.get("frames").asInt());
        JsonNode expect = vector.get("expect");
        String answer = Synthetic.answer(pcm, vector.get("passes").asInt());
        JsonNode seen = Vectors.json(answer.getBytes(StandardCharsets.UTF_8));
        double rms = expect.get("rms").asDouble();
        assertEquals(rms, seen.get("rms").asDouble(), rms * 1e-9, id);
        for (String field : new String[] {"zero_crossings", "checksum", "samples", "transcript", "audio_bytes"}) {
            assertEquals(expect.get(field).asText(), seen.get(field).asText(), id + ": " + field);
        }
    }
}
