package plimsoll.stt.message;

import java.io.IOException;

/** The client's first message. */
public final class StartMessage {
    private StartMessage() {}

    /** Whether {@code text} is the JSON object with the one field {@code "type": "start"}, however spaced or escaped. */
    public static boolean isStart(String text) {
        boolean[] seen = {false};
        try {
            Json.readObject(text, (name, parser) -> {
                if (!name.equals("type") || !Json.string(name, parser).equals("start")) {
                    throw new Json.UnexpectedException("not a start message");
                }
                seen[0] = true;
            });
        } catch (IOException e) {
            return false;
        }
        return seen[0];
    }
}
