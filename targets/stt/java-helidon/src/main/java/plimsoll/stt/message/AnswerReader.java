package plimsoll.stt.message;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Reads the body of a 200 from inference: one JSON object with exactly the six fields, each once and of its type. */
public final class AnswerReader {
    private static final int FIELDS = 6;

    private int seen;
    private double rms;
    private long zeroCrossings;
    private long checksum;
    private long samples;
    private String transcript = "";
    private long audioBytes;

    private AnswerReader() {}

    public static Answer read(byte[] body) {
        AnswerReader reader = new AnswerReader();
        try {
            // A decoder of its own, for it is strict; String would replace what is not UTF-8.
            String text = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(body))
                    .toString();
            Json.readObject(text, reader::field);
        } catch (JsonProcessingException e) {
            return Failure.parse(e.getOriginalMessage());
        } catch (CharacterCodingException e) {
            return Failure.parse("not UTF-8");
        } catch (IOException e) {
            return Failure.parse(e.getMessage());
        }
        // No field comes twice and none is unknown, so to count them is enough.
        if (reader.seen != FIELDS) {
            return Failure.parse("a field is missing");
        }
        return new Answer.Inference(
                reader.rms,
                reader.zeroCrossings,
                reader.checksum,
                reader.samples,
                reader.transcript,
                reader.audioBytes);
    }

    private void field(String name, JsonParser parser) throws IOException {
        switch (name) {
            case "rms" -> rms = Json.number(name, parser);
            case "zero_crossings" -> zeroCrossings = Json.unsigned(name, parser, Long.SIZE);
            case "checksum" -> checksum = Json.unsigned(name, parser, Integer.SIZE);
            case "samples" -> samples = Json.unsigned(name, parser, Long.SIZE);
            case "transcript" -> transcript = Json.string(name, parser);
            case "audio_bytes" -> audioBytes = Json.unsigned(name, parser, Long.SIZE);
            default -> throw new Json.UnexpectedException("unknown field " + name);
        }
        seen++;
    }
}
