package plimsoll.stt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The vectors that all gateways share; {@link GatewayTest} reads {@code frames.json}. */
class VectorsTest {
    private static final double NANOS_PER_MS = 1e6;

    static Stream<Arguments> starts() throws IOException {
        return Vectors.of("start.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("starts")
    void start(String id, JsonNode vector) {
        assertEquals(
                vector.get("ok").asBoolean(), Json.isStart(vector.get("text").asText()), id);
    }

    static Stream<Arguments> answers() throws IOException {
        return Vectors.of("inference_answers.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("answers")
    void inferenceAnswer(String id, JsonNode vector) {
        Answer answer = answer(vector.get("body").asText());
        if (vector.get("ok").asBoolean()) {
            assertInstanceOf(Answer.Inference.class, answer, id);
        } else {
            Answer.Failure failure = assertInstanceOf(Answer.Failure.class, answer, id);
            assertEquals(vector.get("kind").asText(), failure.kind().label);
            assertEquals(200, failure.status());
        }
    }

    private static Answer answer(String body) {
        return Json.readAnswer(body.getBytes(StandardCharsets.UTF_8));
    }

    static Stream<Arguments> failures() throws IOException {
        return Vectors.of("inference_failures.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("failures")
    void inferenceFailure(String id, JsonNode vector) {
        Answer.Failure failure =
                switch (vector.get("transport").asText()) {
                    case "reset" -> Answer.Failure.connection("reset");
                    case "timeout" -> Answer.Failure.timeout();
                    default -> Answer.Failure.status(vector.get("status").asInt());
                };
        assertEquals(vector.get("kind").asText(), failure.kind().label, id);
        assertEquals(vector.get("stage").asText(), failure.kind().stage, id);
        assertEquals(vector.get("retryable").asBoolean(), failure.kind().retryable, id);
    }

    static Stream<Arguments> partials() throws IOException {
        return Vectors.of("partials.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("partials")
    void partial(String id, JsonNode vector) throws IOException {
        JsonNode batch = vector.get("batch");
        Answer.Inference inference = assertInstanceOf(
                Answer.Inference.class, answer(vector.get("inference").toString()));
        String partial = Messages.partial(
                span(batch, 0, 0),
                inference,
                vector.get("config").get("cpu_passes").asLong(),
                nanos(batch, "flush_lateness_ms"));
        assertEquals(vector.get("expect"), Vectors.json(partial), id);
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
        FailureKind kind = Arrays.stream(FailureKind.values())
                .filter(each -> each.label.equals(input.get("kind").asText()))
                .findFirst()
                .orElseThrow();
        String error = Messages.error(
                span(batch, now - nanos(batch, "oldest_age_ms"), now - nanos(batch, "newest_age_ms")),
                new Answer.Failure(kind, input.get("message").asText(), status.isNull() ? null : status.asInt()),
                new Messages.Context(
                        now,
                        nanos(batch, "flush_lateness_ms"),
                        input.get("inference_elapsed_ms").isNull() ? null : nanos(input, "inference_elapsed_ms"),
                        input.get("inflight_gateway_batches").asInt(),
                        input.get("gateway_buffer_frames").asInt()));
        assertEquals(vector.get("expect"), Vectors.json(error), id);
    }

    private static Span span(JsonNode batch, long oldestAtNanos, long newestAtNanos) {
        return new Span(
                batch.get("oldest_frame_seq").asLong(),
                batch.get("newest_frame_seq").asLong(),
                oldestAtNanos,
                newestAtNanos);
    }

    private static Long nanos(JsonNode object, String field) {
        return Math.round(object.get(field).asDouble() * NANOS_PER_MS);
    }
}
