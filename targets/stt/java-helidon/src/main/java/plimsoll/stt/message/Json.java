package plimsoll.stt.message;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.StreamWriteFeature;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;

/** JSON by hand over Jackson's streaming core: no reflection to warm up, and every strictness in sight. */
public final class Json {
    /** A partial has some 330 bytes, an error some 500. */
    private static final int MESSAGE_BYTES_EXPECTED = 512;

    private static final int UNSIGNED_BITS_MAX = 64;

    private static final JsonFactory FACTORY = JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
            .enable(StreamWriteFeature.USE_FAST_DOUBLE_WRITER)
            .build();

    private Json() {}

    /** Writes the fields of an object. */
    @FunctionalInterface
    interface Fields {
        void write(Writer writer) throws IOException;
    }

    /** Reads the value of one field, at which the parser stands. */
    @FunctionalInterface
    public interface Field {
        void read(String name, JsonParser parser) throws IOException;
    }

    /** Thrown for what is JSON but not what was asked for. */
    static final class UnexpectedException extends IOException {
        private static final long serialVersionUID = 1;

        UnexpectedException(String message) {
            super(message);
        }
    }

    static byte[] object(Fields fields) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(MESSAGE_BYTES_EXPECTED);
        try (JsonGenerator generator = FACTORY.createGenerator(bytes)) {
            generator.writeStartObject();
            fields.write(new Writer(generator));
            generator.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException("memory does not fail", e);
        }
        return bytes.toByteArray();
    }

    /**
     * Reads a text that is one object and nothing else, and has no field twice. From a string, for Jackson would guess the
     * encoding of bytes.
     */
    static void readObject(String text, Field field) throws IOException {
        try (JsonParser parser = FACTORY.createParser(text)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new UnexpectedException("not a JSON object");
            }
            for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
                parser.nextToken();
                field.read(name, parser);
            }
            if (parser.currentToken() != JsonToken.END_OBJECT || parser.nextToken() != null) {
                throw new UnexpectedException("something behind the JSON object");
            }
        }
    }

    static String string(String name, JsonParser parser) throws IOException {
        if (parser.currentToken() != JsonToken.VALUE_STRING) {
            throw new UnexpectedException(name + " is not a string");
        }
        return parser.getText();
    }

    static double number(String name, JsonParser parser) throws IOException {
        if (!parser.currentToken().isNumeric()) {
            throw new UnexpectedException(name + " is not a number");
        }
        double value = parser.getDoubleValue();
        if (Double.isInfinite(value)) {
            throw new UnexpectedException(name + " is out of range");
        }
        return value;
    }

    static long unsigned(String name, JsonParser parser, int bits) throws IOException {
        if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT) {
            throw new UnexpectedException(name + " is not a whole number");
        }
        // Nearly always it fits into a long; a big integer is the exception and may cost something.
        if (parser.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
            BigInteger value = parser.getBigIntegerValue();
            if (bits < UNSIGNED_BITS_MAX || value.signum() < 0 || value.bitLength() > bits) {
                throw new UnexpectedException(name + " is out of range");
            }
            return value.longValue();
        }
        long value = parser.getLongValue();
        if (value < 0 || (bits < UNSIGNED_BITS_MAX && value >>> bits != 0)) {
            throw new UnexpectedException(name + " is out of range");
        }
        return value;
    }

    static double milliseconds(long nanos) {
        return Math.max(0, nanos) / 1e6;
    }

    /** Names and values. */
    static final class Writer {
        private final JsonGenerator generator;

        Writer(JsonGenerator generator) {
            this.generator = generator;
        }

        void string(String name, String value) throws IOException {
            generator.writeStringField(name, value);
        }

        void number(String name, double value) throws IOException {
            generator.writeNumberField(name, value);
        }

        void number(String name, long value) throws IOException {
            generator.writeNumberField(name, value);
        }

        void unsigned(String name, long value) throws IOException {
            if (value >= 0) {
                generator.writeNumberField(name, value);
            } else {
                generator.writeNumberField(name, new BigInteger(Long.toUnsignedString(value)));
            }
        }

        void bool(String name, boolean value) throws IOException {
            generator.writeBooleanField(name, value);
        }

        void none(String name) throws IOException {
            generator.writeNullField(name);
        }
    }
}
