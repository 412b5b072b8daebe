package plimsoll.stt;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.params.provider.Arguments;

/** The golden vectors that all gateways share. */
final class Vectors {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Vectors() {}

    /** The cases of a file, each with its id before it. */
    static Stream<Arguments> of(String file) throws IOException {
        JsonNode cases =
                MAPPER.readTree(Path.of("..", "vectors", file).toFile()).get("cases");
        if (cases.isEmpty()) {
            throw new IOException(file + " has no cases");
        }
        return StreamSupport.stream(cases.spliterator(), false)
                .map(each -> Arguments.of(each.get("id").asText(), each));
    }

    static JsonNode json(String text) throws IOException {
        return MAPPER.readTree(text);
    }
}
