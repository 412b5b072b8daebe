package plimsoll.stt;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.io.IOException;

/** JSON by Jackson, as strict as the contract wants it. */
final class Json {
    private static final JsonMapper MAPPER = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
            .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
            .withCoercionConfig(
                    LogicalType.Textual, config -> config.setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                            .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                            .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail))
            .build();

    private Json() {}

    /** The client's first message. */
    private record Start(String type) {
        @JsonCreator(mode = JsonCreator.Mode.PROPERTIES)
        Start {}
    }

    static boolean isStart(String text) {
        try {
            Start start = MAPPER.readValue(text, Start.class);
            return start != null && start.type().equals("start");
        } catch (JsonProcessingException _) {
            return false;
        }
    }

    /** Reads the body of a 200 from inference. */
    static Answer readAnswer(byte[] body) {
        try {
            Answer answer = MAPPER.readValue(body, Answer.Inference.class);
            return answer == null ? Answer.Failure.parse("null") : answer;
        } catch (JsonProcessingException e) {
            return Answer.Failure.parse(e.getOriginalMessage());
        } catch (IOException e) {
            return Answer.Failure.parse(e.getMessage());
        }
    }

    /** An empty object, to be filled and then written by {@code toString}. */
    static ObjectNode object() {
        return MAPPER.createObjectNode();
    }
}
