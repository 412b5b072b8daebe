package plimsoll.stt;

/** A variable whose value cannot be used: one line that names it. */
public final class ConfigException extends Exception {
    private static final long serialVersionUID = 1;

    ConfigException(String name, String value, String problem) {
        super(name + "=" + quoted(value) + ": " + problem);
    }

    /** Keeps the line one line, whatever the value is. */
    private static String quoted(String value) {
        StringBuilder text = new StringBuilder("\"");
        value.codePoints().forEach(c -> {
            if (Character.isISOControl(c)) {
                text.append(String.format("\\u%04x", c));
            } else {
                text.appendCodePoint(c);
            }
        });
        return text.append('"').toString();
    }
}
